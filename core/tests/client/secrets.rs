//! A password never comes back in an error, neither as it is nor percent-encoded (T51).

use drayhorse_core::bridge::Client;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

const FORMS: [&str; 3] = ["S3cr3t", "S3cr3t%21", "cr3t!"];

fn check(url: &str) -> drayhorse_core::error::Error {
    let outcome = Client::connect(url, r#"{"connectTimeoutMs":2000}"#).and_then(|client| {
        let shown = format!("{client:?}");
        assert!(!FORMS.iter().any(|form| shown.contains(form)), "{shown}");
        client.call("schemaVersion", "{}")
    });
    let error = outcome.unwrap_err();
    let shown = format!("{error} {error:?} {}", error.to_json());
    assert!(!FORMS.iter().any(|form| shown.contains(form)), "{shown}");
    error
}

#[test]
fn refused_ports_bad_modes_and_malformed_texts() {
    for password in ["S3cr3t!", "S3cr3t%21"] {
        let at = |rest: &str| format!("postgresql://ann:{password}@{rest}");
        assert_eq!(check(&at("127.0.0.1:1/db")).code(), "connection_lost");
        assert_eq!(check(&at("no-such-host.invalid/db")).code(), "connection_lost");
        for malformed in ["h/db?sslmode=on", "h:port/db", "h/db?x=1", "h/db?S3cr3t!", "h/db%zz", "[::1/db"] {
            assert_eq!(check(&at(malformed)).code(), "invalid_argument", "{malformed}");
        }
        assert_eq!(check(&format!("host=127.0.0.1 port=1 password='{password}' user=ann")).code(), "connection_lost");
        assert_eq!(check(&format!("host=127.0.0.1 password='{password} user=ann")).code(), "invalid_argument");
        assert_eq!(check(&format!("postgres:ann:{password}@h")).code(), "invalid_argument");
    }
}

/// A server that asks for the password in the clear and repeats it in its refusal.
fn gossiping_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut packet = [0; 1024];
            assert!(stream.read(&mut packet).unwrap() > 8);
            stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).unwrap();
            let length = stream.read(&mut packet).unwrap();
            let password = String::from_utf8_lossy(&packet[5..length - 1]).into_owned();
            let fields = format!("SFATAL\0VFATAL\0C28P01\0Mpassword {password} failed for user ann\0\0");
            let mut answer = vec![b'E'];
            answer.extend((fields.len() as u32 + 4).to_be_bytes());
            answer.extend(fields.as_bytes());
            stream.write_all(&answer).unwrap();
        }
    });
    port
}

#[test]
fn a_wrong_password() {
    let port = gossiping_server();
    let error = check(&format!("postgresql://ann:S3cr3t%21@127.0.0.1:{port}/db?sslmode=disable"));
    assert_eq!(error.code(), "permission_denied");
    assert_eq!(error.message(), "password *** failed for user ann");
    let error = check(&format!("postgresql://ann@127.0.0.1:{port}/S3cr3t!?sslmode=disable"));
    assert_eq!((error.code(), &error.details()["field"]), ("invalid_argument", &"url".into()));
}
