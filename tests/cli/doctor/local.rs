//! Problems of this machine.

use super::*;
use crate::support::Env;

#[test]
fn shared_configuration_files_are_reported() {
    let env = Env::new();
    let config = env.configure("[board.a]\nurl = \"sqlite:a.db\"\n");
    let password = config.with_file_name("pw");
    fs::write(&password, "secret").unwrap();
    let found = |code: &str| {
        let run = env.run(format!(
            "doctor --json --board a --only {code} --password-file ../config/jobboard/pw"
        ));
        let report = run.value();
        report["problems"].as_array().unwrap().len()
    };
    for (file, loose, tight, code) in [
        (&config, 0o664, 0o644, "writable-config"),
        (&password, 0o644, 0o600, "readable-password"),
    ] {
        fs::set_permissions(file, fs::Permissions::from_mode(loose)).unwrap();
        assert_eq!(found(code), 1, "{code}");
        fs::set_permissions(file, fs::Permissions::from_mode(tight)).unwrap();
        assert_eq!(found(code), 0, "{code}");
    }
    assert_eq!(found("unsupported-kernel"), 0);
}
