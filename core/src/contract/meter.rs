//! A value as the validator sees it, with a meter on every look: schemas that refer to themselves from several
//! branches can ask for more work, or find more problems, than any worker should spend on one value. Who reaches the
//! end of the meter is unwound to [`run`]; nothing else ever sees that.

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How far a check may go.
#[derive(Clone, Copy)]
pub struct Budget {
    pub looks: u64,
    /// Problems that are put together, also those of alternatives.
    pub problems: u64,
}

/// Why a check did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    OverBudget,
    Panicked,
}

thread_local! {
    static LEFT: Cell<Budget> = const { Cell::new(Budget { looks: 0, problems: 0 }) };
}

struct Spent;

/// Runs a check within its budget.
pub fn run<T>(budget: Budget, check: impl FnOnce() -> T) -> Result<T, Unfinished> {
    LEFT.set(budget);
    catch_unwind(AssertUnwindSafe(check)).map_err(|reason| match reason.is::<Spent>() {
        true => Unfinished::OverBudget,
        false => Unfinished::Panicked,
    })
}

fn look() {
    let left = LEFT.get();
    match left.looks.checked_sub(1) {
        Some(looks) => LEFT.set(Budget { looks, ..left }),
        None => resume_unwind(Box::new(Spent)),
    }
}

fn found_problem() {
    let left = LEFT.get();
    match left.problems.checked_sub(1) {
        Some(problems) => LEFT.set(Budget { problems, ..left }),
        None => resume_unwind(Box::new(Spent)),
    }
}

/// JSON under the meter.
pub struct Metered;

/// A place in a value.
#[derive(Clone, Copy)]
pub struct At<'a>(pub &'a Value);

impl Json for Metered {
    type Node<'a> = At<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;
    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, then: impl FnOnce(At<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| then(At(value)))
    }
}

impl<'a> Node<'a, Metered> for At<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<Members<'a>> {
        look();
        Node::as_object(&self.0).map(Members)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        look();
        Node::as_array(&self.0).map(Items)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        look();
        Node::as_string(&self.0)
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        look();
        Node::as_number(&self.0)
    }

    fn as_boolean(&self) -> Option<bool> {
        look();
        Node::as_boolean(&self.0)
    }

    fn is_null(&self) -> bool {
        look();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        look();
        Node::json_type(&self.0)
    }

    fn string_length(&self) -> Option<u64> {
        look();
        Node::string_length(&self.0)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        look();
        Node::equals_value(&self.0, expected)
    }

    /// Asked for by every error, and by nothing else that is not answered above.
    fn to_value(&self) -> Cow<'a, Value> {
        found_problem();
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::identity(&self.0)
    }
}

/// An object's members.
pub struct Members<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = At<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<At<'a>> {
        look();
        self.0.get(key).map(At)
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.iter())
    }
}

/// Over an object's members.
pub struct MembersIter<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, At<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        look();
        self.0.next().map(|(key, value)| (key.as_str(), At(value)))
    }
}

/// An array's items.
pub struct Items<'a>(&'a [Value]);

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = At<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        look();
        Array::<SerdeJson>::is_unique(&self.0)
    }
}

/// Over an array's items.
pub struct ItemsIter<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for ItemsIter<'a> {
    type Item = At<'a>;

    fn next(&mut self) -> Option<At<'a>> {
        look();
        self.0.next().map(At)
    }
}
