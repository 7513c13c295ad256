//! Checks when server certificates expire: an expired one makes the board unreachable.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use super::{
    cause::{ServerCause, ServerProblem},
    connect::{Deadline, connect},
    tls,
};
use crate::{
    board::{
        examine::Examined,
        url::{Server, TlsFiles},
    },
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

/// How long before its end a certificate should be replaced.
const REPLACE_BEFORE: TimeDelta = TimeDelta::days(30);

pub(crate) async fn examine(
    servers: &[Server],
    files: &TlsFiles,
    deadline: Deadline,
    seen: &mut Examined,
) {
    for server in servers {
        let Ok(certificate) = certificate(server, files, deadline).await else {
            continue;
        };
        let Some(end) = not_after(&certificate) else {
            seen.unseen(format!("the expiry of the certificate of {server}"), None);
            continue;
        };
        let left = end - Utc::now();
        if left < REPLACE_BEFORE {
            let days = left.num_days();
            let summary = format!("the certificate of {server} expires in {days} days");
            let show = Suggestion::of("openssl s_client -connect").with([server.to_string()]);
            let problem =
                Problem::new(Code::CertificateExpires, summary).fixed_by(Fix::elsewhere(show));
            seen.add(problem.seen("until", end.format("%F %TZ")));
        }
    }
}

async fn certificate(
    server: &Server,
    files: &TlsFiles,
    deadline: Deadline,
) -> Result<Vec<u8>, ServerProblem> {
    let config = tls::config(files, server)?;
    let late = |limit| ServerProblem::new(server, ServerCause::SilentInTls(limit));
    let stream = connect(server, deadline).await?;
    let stream = deadline
        .bound(late, tls::secure(stream, server, config))
        .await?;
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(shown.first().map(|it| it.to_vec()).unwrap_or_default())
}

fn not_after(certificate: &[u8]) -> Option<DateTime<Utc>> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(certificate)?;
    let (_, signed, _) = element(certificate)?;
    let rest = match element(signed)? {
        (VERSION, _, rest) => rest,
        _ => signed,
    };
    // The number, the algorithm and the issuer come before the time.
    let rest = (0..3).try_fold(rest, |rest, _| Some(element(rest)?.2))?;
    let (_, validity, _) = element(rest)?;
    let (_, _, behind) = element(validity)?;
    let (tag, text, _) = element(behind)?;
    let form = match tag {
        0x17 => "%y%m%d%H%M%SZ",
        0x18 => "%Y%m%d%H%M%SZ",
        _ => return None,
    };
    let text = std::str::from_utf8(text).ok()?;
    Some(NaiveDateTime::parse_from_str(text, form).ok()?.and_utc())
}

fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, bytes) = bytes.split_first()?;
    let (&length, bytes) = bytes.split_first()?;
    let (length, bytes) = match length {
        0..=0x7f => (usize::from(length), bytes),
        0x81..=0x84 => {
            let (length, bytes) = bytes.split_at_checked(usize::from(length & 0x7f))?;
            let sum = |sum: usize, byte: &u8| (sum << 8) | usize::from(*byte);
            (length.iter().fold(0, sum), bytes)
        }
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificate_has_no_expiry() {
        for bytes in [
            &b""[..],
            b"\x30",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x80",
            &[0x30; 40],
        ] {
            assert_eq!(not_after(bytes), None);
        }
    }

    #[test]
    fn both_encodings_of_a_time_are_read() {
        let wrap = |tag: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).unwrap();
            [&[tag, length][..], content].concat()
        };
        for (tag, text) in [(0x17, &b"300102030405Z"[..]), (0x18, b"20300102030405Z")] {
            let times = [wrap(0x17, b"200101000000Z"), wrap(tag, text)].concat();
            let before = [wrap(2, b"\x01"), wrap(0x30, b""), wrap(0x30, b"")].concat();
            for version in [vec![], wrap(0xa0, b"\x02")] {
                let signed = [version, before.clone(), wrap(0x30, &times)].concat();
                let end = not_after(&wrap(0x30, &wrap(0x30, &signed))).unwrap();
                assert_eq!(end.to_rfc3339(), "2030-01-02T03:04:05+00:00");
            }
        }
    }
}
