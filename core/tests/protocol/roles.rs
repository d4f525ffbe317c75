//! Rights: a schema made by its owner, roles that may do one thing each, and clear words when a grant is missing.

use crate::language::{claim, complete, enqueue, rpc, try_rpc};
use crate::support;
use drayhorse_core::error::Kind;
use serde_json::json;

/// Runs the body as a role without any right of its own, then goes back.
fn as_role<T>(database: &mut support::Database, role: &str, body: impl FnOnce(&mut support::Database) -> T) -> T {
    database.sql(&format!("set role {role}"));
    let result = body(database);
    database.sql("reset role");
    result
}

#[test]
fn t49_each_role_can_do_its_part_and_nothing_else() {
    support::on_each_server("t49", |database| {
        let suffix = database.schema.clone();
        let roles: Vec<String> =
            ["worker", "producer", "reader", "nobody"].iter().map(|r| format!("{suffix}_{r}")).collect();
        for role in &roles {
            database.sql(&format!("drop role if exists {role}; create role {role}"));
        }
        for (role, access) in roles.iter().zip(["worker", "producer", "reader"]) {
            rpc(database.connection(), "rpc_grant", json!({"role": role, "access": access}));
        }

        let id = as_role(database, &roles[1], |d| {
            let id = enqueue(d.connection(), json!({}));
            for refused in
                ["select * from job", "select rpc_get('{}')", "select rpc_cancel('{}')", "delete from runtime"]
            {
                let error = d.try_sql(refused).expect_err(refused);
                assert_eq!(error.kind(), Kind::PermissionDenied, "{refused}: {error}");
            }
            id
        });
        as_role(database, &roles[2], |d| {
            assert_eq!(crate::language::snapshot(d.connection(), &id)["state"], "ready");
            assert_eq!(
                try_rpc(d.connection(), "enqueue", &json!({"type": "t"})).expect_err("reader").kind(),
                Kind::PermissionDenied
            );
            assert_eq!(d.try_sql("select prune(1)").expect_err("reader").kind(), Kind::PermissionDenied);
        });
        as_role(database, &roles[0], |d| {
            let held = claim(d.connection(), 1, 30_000).remove(0);
            complete(d.connection(), &held).expect("complete");
            d.rows("select * from tick(10)", &[]);
            for refused in [
                "update outcome set reason = 'x'",
                "select advance_clock(1)",
                "select rpc_grant('{}')",
                "drop table job",
            ] {
                assert!(d.try_sql(refused).is_err(), "{refused}");
            }
        });
        // As the core sends it, with the schema's name: without it the function would merely not be found.
        let qualified = format!("{}.enqueue", database.store().schema().quoted());
        let message = as_role(database, &roles[3], |d| {
            try_rpc(d.connection(), &qualified, &json!({"type": "t"})).expect_err("no right")
        });
        assert_eq!(message.kind(), Kind::PermissionDenied);
        assert!(message.message().contains("enqueue") || message.message().contains("schema"), "{}", message.message());

        rpc(database.connection(), "rpc_revoke", json!({"role": roles[1], "access": "producer"}));
        as_role(database, &roles[1], |d| {
            assert_eq!(
                try_rpc(d.connection(), &qualified, &json!({"type": "t"})).expect_err("revoked").kind(),
                Kind::PermissionDenied
            );
        });
        for role in &roles {
            database.sql(&format!("drop owned by {role}; drop role {role}"));
        }
    });
}

/// Every function that runs with the owner's rights pins its search_path, and PUBLIC may call none.
#[test]
fn functions_are_pinned_and_not_public() {
    support::on_each_server("pinned", |database| {
        let schema = database.schema.clone();
        let loose = database.rows(
            &format!(
                "select proname::text from pg_proc where pronamespace = '{schema}'::regnamespace and prosecdef \
                 and not exists (select from unnest(coalesce(proconfig, '{{}}')) c where c like 'search_path=%')"
            ),
            &[],
        );
        assert!(loose.is_empty(), "not pinned: {:?}", loose.iter().map(|r| r.get::<_, String>(0)).collect::<Vec<_>>());
        let public = database.rows(
            &format!(
                "select proname::text from pg_proc p where pronamespace = '{schema}'::regnamespace \
                 and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)"
            ),
            &[],
        );
        assert!(
            public.is_empty(),
            "callable by anyone: {:?}",
            public.iter().map(|r| r.get::<_, String>(0)).collect::<Vec<_>>()
        );
    });
}
