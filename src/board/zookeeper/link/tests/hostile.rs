//! Servers that open a session and then answer wrongly.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::Instant,
};

use super::*;

/// The time limit of a request, with an allowance for a loaded machine and for a second session.
const IN_TIME: Duration = Duration::from_secs(15);

/// Makes the bytes of an answer to the request with this number.
type Answer = fn(i32) -> Vec<u8>;

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as i32).to_be_bytes(), body].concat()
}

fn header(xid: i32, code: i32) -> Vec<u8> {
    let number = 5_i64;
    [
        &xid.to_be_bytes()[..],
        &number.to_be_bytes(),
        &code.to_be_bytes(),
    ]
    .concat()
}

fn request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let length = i32::from_be_bytes(length);
    // A longer one is a command of four letters, which looks for the reason of an error.
    let mut body = vec![0; usize::try_from(length).ok().filter(|it| *it < 1 << 16)?];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

fn serve(mut stream: TcpStream, answer: Answer) -> Option<()> {
    request(&mut stream)?;
    let (version, timeout, session, password) = (0_i32, 10_000_i32, 7_i64, framed(&[1; 16]));
    let opened = [
        &version.to_be_bytes()[..],
        &timeout.to_be_bytes(),
        &session.to_be_bytes(),
        &password,
        &[0],
    ];
    stream.write_all(&framed(&opened.concat())).ok()?;
    loop {
        let body = request(&mut stream)?;
        let xid = i32::from_be_bytes(body.get(..4)?.try_into().ok()?);
        let answer = match xid {
            // A ping.
            -2 => framed(&header(xid, 0)),
            _ => answer(xid),
        };
        stream.write_all(&answer).ok()?;
    }
}

#[tokio::test]
async fn wrong_answers_of_a_server_are_errors_in_time() {
    let answers: [(&str, Answer); 6] = [
        ("nothing", |_| Vec::new()),
        ("no body", |xid| framed(&header(xid, 0))),
        ("another type", |xid| {
            framed(&[header(xid, 0), vec![0, 0, 0, 3], vec![0x7f; 200]].concat())
        }),
        ("the number of no request", |_| framed(&header(9999, 0))),
        ("an unknown error", |xid| framed(&header(xid, -777))),
        ("a negative length", |xid| {
            [&(-5_i32).to_be_bytes()[..], &header(xid, 0)].concat()
        }),
    ];
    for (what, answer) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream, answer));
            }
        });
        let client = client(&format!("zk://127.0.0.1:{port}"));
        let start = Instant::now();
        let children = async { client.session("read").await?.children("/jobs").await };
        let message = summary(children.await.expect_err(what));
        assert!(message.contains(&port.to_string()), "{what}: {message}");
        assert!(start.elapsed() < IN_TIME, "{what}: {:?}", start.elapsed());
    }
}
