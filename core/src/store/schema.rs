//! The schema's name, quoted once, and its version compared with what this library needs.

use super::{Connection, Type};
use crate::error::{Error, Kind, Result};
use crate::migrate;

/// The name of the schema that holds the queue. Every statement names it through here.
#[derive(Clone, Debug)]
pub struct Schema {
    name: String,
    quoted: String,
}

/// How the schema's version relates to this library's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// No schema, or nothing in it.
    Missing,
    /// It lacks migrations this library needs.
    TooOld(i32),
    /// It is what this library needs.
    Fits,
    /// A newer library has migrated it.
    TooNew(i32),
}

impl Schema {
    /// Refuses a name PostgreSQL would cut or could not hold, before any statement is sent.
    pub fn new(name: &str) -> Result<Schema> {
        if name.is_empty() || name.len() > 63 || name.contains('\0') {
            return Err(Error::argument("schema", "schema must be 1 to 63 bytes without U+0000").with("limit", 63));
        }
        if name.starts_with("pg_") {
            return Err(Error::argument("schema", "PostgreSQL keeps names that start with pg_ for itself"));
        }
        Ok(Schema { name: name.to_owned(), quoted: quote_identifier(name) })
    }

    /// The name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as an identifier in a statement.
    pub fn quoted(&self) -> &str {
        &self.quoted
    }

    /// An object of the schema, `"drayhorse".enqueue` for example; `object` is a plain identifier.
    pub fn object(&self, object: &str) -> String {
        format!("{}.{object}", self.quoted)
    }

    /// The version in the database, none when the schema has not been migrated.
    pub fn version(&self, connection: &mut Connection) -> Result<Option<i32>> {
        let table = self.object("schema_version");
        let exists = connection.query_one("select to_regclass($1) is not null", &[(&table, Type::TEXT)])?;
        if !exists.try_get::<_, bool>(0).map_err(|e| connection.refuse_row(e))? {
            return Ok(None);
        }
        let row = connection.query_one(&format!("select max(version) from {table}"), &[])?;
        row.try_get(0).map_err(|e| connection.refuse_row(e))
    }

    /// Compares the database's version with this library's.
    pub fn compatibility(&self, connection: &mut Connection) -> Result<Compatibility> {
        let expected = migrate::LATEST;
        Ok(match self.version(connection)? {
            None => Compatibility::Missing,
            Some(version) if version < expected => Compatibility::TooOld(version),
            Some(version) if version > expected => Compatibility::TooNew(version),
            Some(_) => Compatibility::Fits,
        })
    }
}

impl Compatibility {
    /// Nothing, or the typed error with both numbers.
    pub fn check(self, schema: &Schema) -> Result<()> {
        let expected = migrate::LATEST;
        let name = schema.name();
        match self {
            Compatibility::Fits => Ok(()),
            Compatibility::Missing => Err(Error::new(
                Kind::SchemaMissing,
                format!("the schema {name} has not been migrated; this library needs version {expected}: call migrate"),
            )
            .with("schema", name)
            .with("expected", expected)),
            Compatibility::TooOld(version) => Err(Error::new(
                Kind::SchemaTooOld,
                format!("the schema {name} has version {version}, this library needs {expected}: call migrate"),
            )
            .with("schema", name)
            .with("version", version)
            .with("expected", expected)),
            Compatibility::TooNew(version) => Err(Error::new(
                Kind::SchemaTooNew,
                format!("the schema {name} has version {version}, this library knows {expected}: update the library"),
            )
            .with("schema", name)
            .with("version", version)
            .with("expected", expected)),
        }
    }
}

/// `name` as an SQL identifier.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_quoted() {
        assert_eq!(Schema::new("a\"b").unwrap().object("enqueue"), "\"a\"\"b\".enqueue");
        assert_eq!(Schema::new("user").unwrap().quoted(), "\"user\"");
    }

    #[test]
    fn names_postgresql_would_cut_are_refused() {
        assert!(Schema::new(&"x".repeat(63)).is_ok());
        for name in [String::new(), "x".repeat(64), "ü".repeat(32), "a\0".into(), "pg_x".into()] {
            assert_eq!(Schema::new(&name).unwrap_err().code(), "invalid_argument");
        }
    }
}
