//! Every `sslmode` against good, foreign, misnamed, self-signed and expired certificates. The server answers any login
//! with a refusal, which tells by its text whether it was reached in the clear or by TLS.

use drayhorse_core::bridge::Client;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { params, key, pem }
}

impl Authority {
    fn sign(&self, host: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        Identity { chain: vec![certificate.der().clone()], key }
    }
}

/// As PostgreSQL's manual makes one: its own authority and its own server.
fn self_signed(host: &str, until_year: i32) -> (Identity, String) {
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(until_year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let pem = certificate.pem();
    (Identity { chain: vec![certificate.der().clone()], key }, pem)
}

fn refuse_login(stream: &mut (impl Read + Write), how: &str) {
    let mut length = [0; 4];
    if stream.read_exact(&mut length).is_err() {
        return;
    }
    let mut packet = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut packet).unwrap();
    let fields = format!("SFATAL\0VFATAL\0C28P01\0Mreached {how}\0\0");
    let mut answer = vec![b'E'];
    answer.extend((fields.len() as u32 + 4).to_be_bytes());
    answer.extend(fields.as_bytes());
    stream.write_all(&answer).unwrap();
    stream.flush().unwrap();
}

/// A server with that certificate, or one that has none.
fn server(identity: Option<Identity>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = identity.map(|identity| {
        let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(identity.chain, key);
        Arc::new(config.unwrap())
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut start = [0; 8];
            stream.peek(&mut start).unwrap();
            if start[4..] != 80_877_103_u32.to_be_bytes() {
                refuse_login(&mut stream, "in the clear");
                continue;
            }
            stream.read_exact(&mut start).unwrap();
            match &config {
                None => {
                    stream.write_all(b"N").unwrap();
                    refuse_login(&mut stream, "in the clear");
                }
                Some(config) => {
                    stream.write_all(b"S").unwrap();
                    let tls = ServerConnection::new(config.clone()).unwrap();
                    refuse_login(&mut StreamOwned::new(tls, stream), "by TLS");
                }
            }
        }
    });
    port
}

struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("drayhorse-{}-{name}.pem", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn reach(host: &str, port: u16, mode: &str, authority: Option<&File>) -> String {
    let mut options = json!({"connectTimeoutMs": 5000, "tls": {"mode": mode}});
    if let Some(file) = authority {
        options["tls"]["caFile"] = file.0.to_str().into();
    }
    let url = format!("postgresql://ann:S3cr3t!@{host}:{port}/db");
    let error = Client::connect(&url, &options.to_string()).and_then(|c| c.call("schemaVersion", "{}")).unwrap_err();
    match error.code() {
        "permission_denied" => error.message().to_owned(),
        "invalid_argument" => {
            assert_eq!(error.details()["field"], "tls", "{error}");
            "refused".to_owned()
        }
        other => panic!("{other}: {error}"),
    }
}

#[test]
fn each_mode_asks_for_what_libpq_asks() {
    let (ours, foreign) = (authority("ours"), authority("foreign"));
    let (trusted, other) = (File::new("ours", &ours.pem), File::new("foreign", &foreign.pem));
    let secured = server(Some(ours.sign("localhost")));
    let plain = server(None);
    for (host, port, mode, file, expected) in [
        ("localhost", secured, "disable", None, "reached in the clear"),
        ("localhost", secured, "prefer", None, "reached by TLS"),
        ("localhost", plain, "prefer", None, "reached in the clear"),
        ("127.0.0.1", secured, "require", None, "reached by TLS"),
        ("localhost", plain, "require", None, "refused"),
        ("localhost", secured, "require", Some(&other), "refused"),
        ("127.0.0.1", secured, "require", Some(&trusted), "reached by TLS"),
        ("127.0.0.1", secured, "verify-ca", Some(&trusted), "reached by TLS"),
        ("localhost", secured, "verify-ca", Some(&other), "refused"),
        ("localhost", secured, "verify-full", Some(&trusted), "reached by TLS"),
        ("127.0.0.1", secured, "verify-full", Some(&trusted), "refused"),
        ("localhost", secured, "verify-full", Some(&other), "refused"),
    ] {
        assert_eq!(reach(host, port, mode, file), expected, "{host} {mode}");
    }
}

#[test]
fn a_certificate_that_is_its_own_authority() {
    let (good, pem) = self_signed("localhost", 2200);
    let (late, late_pem) = self_signed("localhost", 2002);
    let (stranger, _) = self_signed("localhost", 2200);
    let (file, late_file) = (File::new("self", &pem), File::new("late", &late_pem));
    let (good, late, stranger) = (server(Some(good)), server(Some(late)), server(Some(stranger)));
    for (host, port, mode, file, expected) in [
        ("localhost", good, "verify-full", &file, "reached by TLS"),
        ("127.0.0.1", good, "verify-full", &file, "refused"),
        ("127.0.0.1", good, "verify-ca", &file, "reached by TLS"),
        ("localhost", late, "verify-ca", &late_file, "refused"),
        ("localhost", stranger, "verify-ca", &file, "refused"),
    ] {
        assert_eq!(reach(host, port, mode, Some(file)), expected, "{host} {mode}");
    }
}

#[test]
fn certificate_files_are_looked_at_when_connecting() {
    for (options, field) in [
        (json!({"tls": {"mode": "verify-full", "caFile": "/no/such/file"}}), "tls.caFile"),
        (json!({"tls": {"mode": "verify-ca", "caFile": "/dev/null"}}), "tls.caFile"),
        (json!({"tls": {"mode": "verify_full"}}), "tls.mode"),
    ] {
        let error = Client::connect("postgresql://h/db", &options.to_string()).unwrap_err();
        assert_eq!((error.code(), &error.details()["field"]), ("invalid_argument", &json!(field)));
    }
    let error = Client::connect("postgresql://h/db?sslcert=x&sslmode=require", "{}").unwrap_err();
    assert_eq!(error.details()["field"], "sslcert");
}
