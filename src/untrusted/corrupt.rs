//! Mutated inputs: a few changes, many, or random bytes.

pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(begin: u64) -> Self {
        // Zero would only produce zeros.
        let mut dice = Self((begin ^ 0x9e37_79b9_7f4a_7c15) | 1);
        dice.roll(2);
        dice
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % sides.max(1) as u64) as usize
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// Bytes that change the meaning of the next ones, in text or in MessagePack.
const LEADS: &[u8] = b"{}[]()<>\"'\\:;,.-+=!~*?%@/#&u0eN \t\n\0\x7f\xff\xed\x80\x82\x90\x92\xa0\xa3\
                       \xc0\xc1\xc4\xc6\xc7\xc9\xca\xcb\xcc\xcf\xd3\xd6\xd9\xdb\xdc\xdd\xde\xdf\xe0";

const WORDS: [&[u8]; 44] = [
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\0\0\0\0",
    b"\xdf\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xdb\x7f\xff\xff\xff",
    b"\xc9\0\0\xff\xff\x01",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"9223372036854775807",
    b"340282366920938463463374607431768211456",
    b"99999999999999999999999999999999999999999999999999",
    b"1e400",
    b"-0.0",
    b"0.1e-999999",
    b"NaN",
    b"-Infinity",
    b"null",
    b"true",
    b"none",
    b" and ",
    b"\\ud83d",
    b"\\u0000",
    b"\"\"",
    b"''",
    b"[*",
    b"(a|b){99}",
    b"..",
    b"%00",
    b"%",
    b"//",
    b"://",
    b"~",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\xc2\x9b",
    b"\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",
    b"\xed\xa0\x80",
    b"+12345-01-01T00:00:00Z",
    b"-0001-12-31T23:59:59Z",
    b"9999-12-31T23:59:60Z",
    b"{\"$ext\":1,\"text\":\"2024-02-29T13:05:60.123456\"}",
    b"{\"$ext\":2,\"text\":\"[1,2,3]\"}",
    b"{\"$float\":\"nan\"}",
];

const NESTS: [(&[u8], &[u8]); 6] = [
    (b"[", b"]"),
    (b"{\"a\":", b"}"),
    (b"(", b")"),
    (b"\x91", b""),
    (b"\x81\xa1a", b""),
    (b"[[],", b"]"),
];

pub(super) fn corrupted(intact: &[Vec<u8>], longest: usize, dice: &mut Dice) -> Vec<u8> {
    let mut input = match dice.roll(16) {
        0 => (0..dice.roll(40)).map(|_| dice.roll(256) as u8).collect(),
        1 => (0..dice.roll(40)).map(|_| *dice.one_of(LEADS)).collect(),
        _ => dice.one_of(intact).clone(),
    };
    for _ in 0..=dice.roll(4) {
        corrupt(&mut input, intact, longest, dice);
    }
    input.truncate(longest);
    input
}

fn corrupt(input: &mut Vec<u8>, intact: &[Vec<u8>], longest: usize, dice: &mut Dice) {
    let at = dice.roll(input.len() + 1);
    let end = (at + 1 + dice.roll(8)).min(input.len());
    let word = dice.one_of(&WORDS);
    let put = |input: &mut Vec<u8>, what: &[u8]| _ = input.splice(at..at, what.iter().copied());
    match dice.roll(14) {
        0 => input.truncate(at),
        1 => input.insert(at, *dice.one_of(LEADS)),
        2 => put(input, word),
        3 => {
            input.splice(at..end, word.iter().copied());
        }
        4 => {
            let piece = input[at..end].repeat(1 + dice.roll(3));
            put(input, &piece);
        }
        5 => {
            // Joins the beginning of one with the end of another.
            let other = dice.one_of(intact);
            input.truncate(at);
            input.extend(&other[dice.roll(other.len())..]);
        }
        6 if dice.roll(8) == 0 => {
            let length = dice.roll(longest);
            let piece = input[at..end].to_vec();
            let piece = if piece.is_empty() { &b"a"[..] } else { &piece };
            put(input, &piece.repeat(length / piece.len()));
        }
        7 if dice.roll(4) == 0 => {
            let (open, close) = *dice.one_of(&NESTS);
            let most = 1 << dice.roll(12);
            let depth = 1 + dice.roll(most);
            let inner = input[at..end].to_vec();
            let nested = [&open.repeat(depth)[..], &inner, &close.repeat(depth)].concat();
            input.splice(at..end, nested);
        }
        _ if at == input.len() => {}
        8 | 9 => input[at] = *dice.one_of(LEADS),
        10 => input[at] ^= 1 << dice.roll(8),
        11 => input[at] = b'0' + dice.roll(10) as u8,
        _ => {
            input.drain(at..end);
        }
    }
}
