use super::*;
use crate::store::{Options, Store};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn versions_ascend_without_gaps() {
    for (i, migration) in MIGRATIONS.iter().enumerate() {
        assert_eq!(migration.version as usize, i + 1);
    }
}

#[test]
fn every_file_of_core_sql_is_installed_and_names_no_schema() {
    fn collect(folder: &Path, root: &Path, into: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, into);
            } else if path.extension().is_some_and(|extension| extension == "sql") {
                into.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut present = BTreeSet::new();
    collect(&root, &root, &mut present);
    let listed: Vec<&File> = MIGRATIONS.iter().flat_map(|m| m.files).chain(FUNCTIONS).chain([&SETTLE]).collect();
    let names: BTreeSet<String> = listed.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(present, names);
    for (path, text) in listed {
        assert!(!text.contains("drayhorse."), "{path} names the schema; it must work in any");
    }
}

#[test]
fn each_schema_has_its_own_lock() {
    let key = |name| lock_key(&Schema::new(name).unwrap());
    assert_ne!(key("a"), key("b"));
    assert_eq!(key("a"), key("a"));
}

/// What a later version of the library might bring.
const ADDITION: File = ("migrations/0002_addition.sql", "alter table settings add column added_by_2 int");
const NEW_FUNCTION: File = (
    "new.sql",
    "create or replace function brand_new() returns int language sql set search_path from current as 'select 2'",
);
const HALF: File = ("migrations/0003_half.sql", "create table half (n int); select 1 / 0");

fn version(number: i32, files: &'static [File]) -> Migration {
    Migration { version: number, files }
}

#[test]
fn later_versions_are_applied_once_in_order_and_wholly() {
    for variable in ["DRAYHORSE_TEST_URL", "DRAYHORSE_TEST_URL_15"] {
        let url = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"));
        let options = Options { schema: format!("test_versions_{}", std::process::id()), ..Options::default() };
        let store = Store::open(&url, options).unwrap();
        let mut connection = store.connect().unwrap();
        let schema = store.schema();
        let run = |connection: &mut Connection, migrations: &[Migration], functions: &[File]| {
            Plan { migrations, functions }.run(connection, schema)
        };
        let later_functions: Vec<File> = FUNCTIONS.iter().copied().chain([NEW_FUNCTION]).collect();
        let second = [version(1, MIGRATIONS[0].files), version(2, &[ADDITION])];

        assert_eq!(run(&mut connection, MIGRATIONS, FUNCTIONS).unwrap().applied, [1]);
        assert_eq!(run(&mut connection, &second, &later_functions).unwrap(), Migrated { version: 2, applied: vec![2] });
        assert_eq!(run(&mut connection, &second, &later_functions).unwrap(), Migrated { version: 2, applied: vec![] });
        let call = format!("select {}()", schema.object("brand_new"));
        assert_eq!(connection.query_one(&call, &[]).unwrap().get::<_, i32>(0), 2);
        assert_eq!(run(&mut connection, MIGRATIONS, FUNCTIONS).unwrap_err().code(), "schema_too_new");

        let third = [version(1, MIGRATIONS[0].files), version(2, &[ADDITION]), version(3, &[HALF])];
        let error = run(&mut connection, &third, &later_functions).unwrap_err();
        assert_eq!(error.details()["file"], HALF.0);
        assert_eq!(schema.version(&mut connection).unwrap(), Some(2));
        let half = connection.query_one("select to_regclass($1) is null", &[(&schema.object("half"), Type::TEXT)]);
        assert!(half.unwrap().get::<_, bool>(0));
        connection.batch(&format!("drop schema {} cascade", schema.quoted())).unwrap();
    }
}
