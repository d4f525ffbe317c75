//! After a fork the child gets a clear error and the parent keeps its session (T40).

use crate::support::{Database, call};
use drayhorse_core::bridge::Client;
use serde_json::json;

/// What the child does with the inherited client: 0 when everything was as it should be.
fn in_child(client: Client) -> i32 {
    let refused = |code: Option<&'static str>| i32::from(code != Some("used_after_fork"));
    let mut faults = refused(client.call("schemaVersion", "{}").err().map(|error| error.code()));
    let (send, receive) = std::sync::mpsc::channel();
    client.submit("enqueue", r#"{"type":"t"}"#, Box::new(move |result| send.send(result).unwrap_or(())));
    faults += refused(receive.try_recv().ok().and_then(Result::err).map(|error| error.code()));
    faults += i32::from(client.cancel(1));
    client.close();
    drop(client);
    faults
}

#[test]
fn a_child_is_refused_and_the_parent_goes_on() {
    let mut database = Database::migrated("DRAYHORSE_TEST_URL", "fork");
    let client = database.client();
    call(&client, "enqueue", json!({"type": "t"}));
    let connection = database.another_connection();
    let mut kept = Some(connection);
    for _ in 0..3 {
        // SAFETY: the child only touches what the test hands it and leaves by _exit.
        match unsafe { libc::fork() } {
            0 => {
                let faults = in_child(client.clone());
                drop(kept.take());
                unsafe { libc::_exit(faults) }
            }
            child => {
                assert!(child > 0);
                let mut status = 0;
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0);
            }
        }
        call(&client, "enqueue", json!({"type": "t"}));
        let inherited = kept.as_mut().unwrap();
        assert_eq!(inherited.query_one("select 1", &[]).unwrap().get::<_, i32>(0), 1);
    }
    assert_eq!(database.count("job"), 4);
}
