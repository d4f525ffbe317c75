use super::*;

fn parse(text: &str) -> Dsn {
    let mut dsn = Dsn::parse(text).unwrap();
    dsn.apply(&Options::default()).unwrap();
    dsn
}

#[test]
fn url_and_keywords_mean_the_same() {
    for text in [
        "postgresql://ann:S3cr3t%21@db.example:5433/jobs?sslmode=verify-full&connect_timeout=3",
        "postgres://ann:S3cr3t!@db.example:5433/jobs?sslmode=verify-full&connect_timeout=3",
        "host=db.example port = 5433 user=ann password='S3cr3t!' dbname=jobs sslmode=verify-full connect_timeout=3",
    ] {
        let dsn = parse(text);
        assert_eq!(dsn.config.get_user(), Some("ann"));
        assert_eq!(dsn.config.get_password(), Some(&b"S3cr3t!"[..]));
        assert_eq!(dsn.config.get_hosts(), [Host::Tcp("db.example".into())]);
        assert_eq!(dsn.config.get_ports(), [5433]);
        assert_eq!(dsn.config.get_dbname(), Some("jobs"));
        assert_eq!(dsn.config.get_application_name(), Some("drayhorse"));
        assert_eq!(dsn.config.get_options(), None);
        assert_eq!(dsn.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(dsn.tls.mode, TlsMode::VerifyFull);
        assert_eq!(dsn.connect_timeout_ms, Some(3000));
    }
}

#[test]
fn hosts_in_every_spelling() {
    let dsn = parse("postgresql://a,b:6000,[::1]:7000/db?sslmode=disable");
    assert_eq!(dsn.config.get_hosts().len(), 3);
    assert_eq!(dsn.config.get_ports(), [5432, 6000, 7000]);
    assert_eq!(dsn.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    for text in ["postgresql://u@%2Frun%2Fpg/db", "postgresql:///db?host=/run/pg", "host=/run/pg sslmode=require"] {
        let dsn = parse(text);
        assert_eq!(dsn.config.get_hosts(), [Host::Unix("/run/pg".into())]);
        assert_eq!(dsn.config.get_ssl_mode(), SslMode::Disable);
    }
    assert_eq!(parse("postgresql://").config.get_hosts(), [Host::Tcp("localhost".into())]);
}

#[test]
fn a_statement_timeout_never_reaches_the_startup_packet() {
    let dsn = parse("postgresql://h/db?options=-c%20statement_timeout%3D2s%20-c%20work_mem%3D8MB");
    assert_eq!(dsn.statement_timeout_ms, Some(2000));
    assert_eq!(dsn.config.get_options(), Some("-c work_mem=8MB"));
    let dsn = parse("host=h options='-cstatement_timeout=1500'");
    assert_eq!((dsn.statement_timeout_ms, dsn.config.get_options()), (Some(1500), None));
    assert!(Dsn::parse("host=h options='--statement_timeout=soon'").is_err());
}

#[test]
fn refusals_never_repeat_a_secret() {
    for text in [
        "postgresql://ann:S3cr3t!@h/db?sslmode=S3cr3t!",
        "postgresql://ann:S3cr3t!@h:S3cr3t!/db",
        "postgresql://ann:x?S3cr3t!@h/db",
        "postgresql://ann:x?S3cr3t!=1@h/db",
        "postgresql://ann:S3cr3t!%2@h/db",
        "postgresql://ann:S3cr3t%21%FF@h/db",
        "postgresql://ann:S3cr3t!@[::1/db",
        "mysql://ann:S3cr3t!@h/db",
        "S3cr3t!",
        "host=h password='S3cr3t!",
        "host=h password=ab S3cr3t!",
        "host=h S3cr3t!=x",
        "host=h connect_timeout=S3cr3t!",
        "host=h channel_binding=S3cr3t!",
        "host=h,i hostaddr=S3cr3t! password=S3cr3t!",
        "host=h options='-c statement_timeout=S3cr3t!'",
    ] {
        let error = match Dsn::parse(text) {
            Ok(_) => panic!("accepted"),
            Err(error) => error,
        };
        assert_eq!(error.code(), "invalid_argument");
        let shown = format!("{error} {error:?} {}", error.to_json());
        assert!(!shown.contains("S3cr3t"), "{shown}");
    }
}

#[test]
fn a_password_is_taken_out_of_a_message() {
    let dsn = parse("postgresql://ann:S3cr3t%21@h/db");
    let error = Error::argument("url", "no S3cr3t! and no S3cr3t%21");
    assert_eq!(dsn.without_secrets(error).message(), "no *** and no ***");
}

#[test]
fn options_go_before_the_url() {
    let mut dsn = Dsn::parse("postgresql://h/db?sslmode=disable").unwrap();
    let options = Options { tls_mode: Some("require".into()), ..Options::default() };
    dsn.apply(&options).unwrap();
    assert_eq!(dsn.tls.mode, TlsMode::Require);
    let options = Options { tls_mode: Some("no-idea".into()), ..Options::default() };
    assert_eq!(dsn.apply(&options).unwrap_err().details()["field"], "tls.mode");
}
