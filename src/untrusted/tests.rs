//! Deliberately broken decoders: the fuzzer must find their faults.

use super::*;

const LENGTHS: [&[u8]; 3] = [b"\0\x03abc", b"\0\0", b"\0\x05hello"];

fn corpus() -> Corpus {
    Corpus::of(Bounds::STORED, LENGTHS)
}

fn read<'a>(input: &'a [u8], take: impl Fn(&'a [u8], usize) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let (length, rest) = input.split_first_chunk()?;
    take(rest, u16::from_be_bytes(*length).into())
}

fn tried(read: Option<Vec<u8>>, input: &[u8]) -> Tried {
    let Some(bytes) = read else {
        return refused("it breaks off");
    };
    let again = [&(bytes.len() as u16).to_be_bytes(), &bytes[..]].concat();
    same("written again", &input.to_vec(), &again)?;
    Ok(Answer::Read)
}

fn honest(rest: &[u8], length: usize) -> Option<Vec<u8>> {
    (rest.len() == length).then(|| rest.to_vec())
}

#[test]
fn untrusted_bytes_find_no_fault_in_a_correct_decoder() {
    corpus().hold(|input| tried(read(input, honest), input));
}

#[test]
fn untrusted_bytes_expose_a_decoder_that_reads_past_the_end() {
    let fault = corpus().fault(|input| {
        let as_far = |rest: &[u8], length: usize| Some(rest[..length.min(rest.len())].to_vec());
        tried(read(input, as_far), input)
    });
    let fault = fault.expect("it is found");
    assert!(fault.invariant.contains("written again"), "{fault:?}");
    assert!(fault.input.len() <= 3, "{fault:?}");
}

#[test]
fn untrusted_bytes_expose_a_decoder_that_trusts_a_length() {
    let fault = corpus().fault(|input| {
        let believing = |rest: &[u8], length: usize| {
            let mut room = Vec::with_capacity(64 * length);
            room.extend(honest(rest, length)?);
            Some(room)
        };
        tried(read(input, believing), input)
    });
    let fault = fault.expect("it is found");
    assert!(fault.invariant.contains("bytes of memory"), "{fault:?}");
}

#[test]
fn untrusted_bytes_expose_a_decoder_with_long_errors() {
    let fault = corpus().fault(|input| match read(input, honest) {
        Some(_) => Ok(Answer::Read),
        None => refused(&input.escape_ascii()),
    });
    assert!(
        fault
            .expect("it is found")
            .invariant
            .contains("bytes of words")
    );
}

#[test]
fn untrusted_bytes_expose_a_decoder_that_panics() {
    let fault = corpus().fault(|input| {
        let length = input.first().copied().map_or(0, usize::from);
        match input[..length].is_empty() {
            true => refused("there is nothing"),
            false => Ok(Answer::Read),
        }
    });
    assert!(fault.expect("it is found").invariant.contains("it panics"));
}
