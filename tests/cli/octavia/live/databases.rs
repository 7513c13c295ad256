//! Logbooks in the databases of OpenStack.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    Cloud, is_explained,
    mend::{Tables, VERDICTS},
    text,
};
use crate::support::{Authority, Database, Env, Server, databases::NAMES, needs};

impl Tables for Database {
    fn urls(&self, _: &Env) -> Value {
        let [octavia, persistence] = NAMES.map(|name| self.url(name));
        json!({"database": octavia, "persistence": persistence})
    }

    fn change_logbooks(&self, _: &Env, words: &str) {
        self.execute(NAMES[1], words);
    }
}

fn cloud(database: &Database) -> Option<Cloud<Server>> {
    let env = Env::new();
    let urls = database.urls(&env);
    Cloud::with(env, &urls)
}

/// A hanging database costs its part of an answer, and no more than the timeout.
fn is_missed(cloud: &mut Cloud<Server>, database: &Database) {
    let posted = cloud.post("create_load_balancer");
    let job = text(&posted, "job").to_owned();
    database.signal(Signal::STOP);
    let explained = cloud.run_json(&["explain", &job, "--op-timeout", "3s"]);
    database.signal(Signal::CONT);
    let unseen = explained["unseen"].to_string();
    assert!(unseen.contains("did not reply within 3s"), "{explained}");
    assert!(explained["verdict"].is_string(), "{explained}");
    let refused = cloud.run(&["flow", &job, "--logbook", &database.url("nowhere")]);
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    // MariaDB hides from users without rights whether a database exists.
    let code = if database.is_mariadb() { 5 } else { 1 };
    assert_eq!(refused.code, code, "{refused}");
}

/// Detects tables with too short columns.
fn is_found_short(cloud: &Cloud<Server>, database: &Database) {
    let short = || {
        let report = cloud.run_json(&["doctor", "--only", "short-columns"]);
        assert_eq!(report["unseen"], json!([]), "{report}");
        report["problems"].to_string()
    };
    assert_eq!(short(), "[]");
    if database.is_mariadb() {
        let columns = [
            "flowdetails.meta",
            "atomdetails.results",
            "atomdetails.failure",
            "atomdetails.revert_failure",
        ];
        for column in columns {
            let (table, name) = column.split_once('.').unwrap();
            database.mysql(&format!(
                "ALTER TABLE persistence.{table} MODIFY {name} TEXT"
            ));
            assert!(short().contains(column), "{}", short());
        }
    }
}

/// Over TLS the certificate must come from a trusted authority.
fn is_read_over_tls(cloud: &mut Cloud<Server>, database: &Database) {
    let job = text(&cloud.post("create_load_balancer"), "job").to_owned();
    let flow = |authority: &Authority| {
        let url = database.secure_url(NAMES[1], authority);
        cloud.run(&["flow", &job, "--logbook", &url])
    };
    flow(database.authority()).succeeded();
    // Without a file, the system's authorities are trusted.
    let words = ["flow", &job, "--logbook", &database.tls_url(NAMES[1])];
    let by_system = |ca: &Authority| cloud.prepare(&words).env("SSL_CERT_FILE", ca.ca()).run();
    by_system(database.authority()).succeeded();
    flow(&Authority::new().unwrap()).fails(5, "certificate");
    by_system(&Authority::new().unwrap()).fails(5, "certificate");
}

/// A user who may only read sees everything, and changes nothing.
fn is_mended(cloud: &mut Cloud<Server>, database: &Database) {
    let posted = cloud.post("update_load_balancer");
    let job = text(&posted, "job").to_owned();
    let name = format!("octavia:{}", cloud.conf.display());
    let forced = ["consume", &job, "--force", "--confirm", &name];
    cloud.run(&forced).succeeded();
    cloud.age(&posted);
    if database.is_mariadb() {
        database.mysql("GRANT SELECT ON octavia.* TO 'reader'@'127.0.0.1' IDENTIFIED BY 'hunter2'");
    } else {
        for words in [
            "CREATE ROLE reader LOGIN PASSWORD 'hunter2'",
            "GRANT SELECT ON load_balancer, amphora TO reader",
        ] {
            cloud.octavia.ask(&json!({"do": "sql", "words": words}));
        }
    }
    let reader = database.url_of_reader(NAMES[0]);
    let by_reader = [
        "--octavia-database",
        &reader,
        "--failover-command",
        "true",
        "--timeout",
        "0s",
    ];
    let balancer = text(&posted, "loadbalancer");
    let look = cloud.run(&[&["mend", "--lb", balancer, "--json"], by_reader.as_slice()].concat());
    assert_eq!(look.json()["verdict"], "never-posted", "{look}");
    let denied = cloud.apply(&posted, &by_reader);
    denied.fails(5, "`jobboard config`");
    let status = json!({"do": "status", "id": balancer});
    assert_eq!(cloud.octavia.ask(&status), "PENDING_UPDATE");
    // The failover does nothing here.
    cloud.apply(&posted, &by_reader[2..]).failed(124);
    assert_eq!(cloud.octavia.ask(&status), "ERROR");
}

fn has_logbooks(database: Option<Database>) {
    need!(database = database);
    if let Some(mut cloud) = cloud(&database) {
        is_found_short(&cloud, &database);
        is_read_over_tls(&mut cloud, &database);
        is_mended(&mut cloud, &database);
        is_missed(&mut cloud, &database);
        is_explained(cloud);
        // One verdict on each kind of board, or all of them.
        let most = if needs::is_full() { VERDICTS.len() } else { 2 };
        for (name, provoke) in &VERDICTS[..most] {
            eprintln!("{name}, {}", database.url(""));
            database.clear();
            provoke(&database);
        }
    }
}

#[cfg(feature = "mysql")]
#[test]
fn mariadb_has_logbooks() {
    has_logbooks(Database::mariadb());
}

#[cfg(feature = "postgres")]
#[test]
fn postgresql_has_logbooks() {
    has_logbooks(Database::postgres());
}
