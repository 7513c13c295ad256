//! Invalid filters and their messages.

use super::*;
use crate::tests::rows;

fn refusal(expression: &str) -> String {
    expression.parse::<Filter>().unwrap_err().to_string()
}

/// Requires that each refusal contains a text, in one line.
#[track_caller]
fn refused(cases: &str) {
    for [expression, part] in rows(cases) {
        let refusal = refusal(expression);
        assert!(refusal.contains(part), "{refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}

#[test]
fn field_without_an_operator_is_refused() {
    let refused = refusal("name");
    assert!(refused.starts_with("invalid filter `name`: "), "{refused}");
    assert!(refused.contains("= != ~ !~ < <= > >="), "{refused}");
    let long = "x".repeat(1_000);
    assert!(refusal(&long).contains("= != ~ !~ < <= > >="));
    for text in ["", " "] {
        assert!(refusal(text).contains("held>10m"));
    }
}

#[test]
fn single_word_searches_name_uuid_owner_and_reason() {
    let search: Filter = "RESI".parse().unwrap();
    assert!(search.matches(&named("resize"), now()));
    assert!(!search.matches(&named("rotate"), now()));
}

#[test]
fn unknown_operator_lists_the_known_ones() {
    assert_eq!(
        refusal("name==a"),
        "invalid filter `name==a`: unknown operator `==`; use one of = != ~ !~ < <= > >=, and \
         put a space before a value that begins with such a character"
    );
    refused(
        r"
        name=~a => unknown operator `=~`;
        name!a => unknown operator `!`;
        name<>a => unknown operator `<>`;
        age=>1m => unknown operator `=>`;
        name!==a => unknown operator `!==`;
        ",
    );
}

#[test]
fn unknown_field_lists_the_known_ones() {
    assert_eq!(
        refusal("onwer=bob"),
        "invalid filter `onwer=bob`: unknown field `onwer` (did you mean `owner`?); the fields are \
         name, state, owner, priority, sequence, age, held, expires, attempts, size, trashed, ended, \
         outcome, by, action, reason, waited, took, exit_code, lb, amphora, details.PATH"
    );
    refused(
        r"
        status=claimed => (did you mean `state`?)
        Name=x => (did you mean `name`?)
        attempt>3 => (did you mean `attempts`?)
        expiry<1m => (did you mean `expires`?)
        detail=x => (did you mean `details`?)
        na me=x => (did you mean `name`?)
        ",
    );
    for text in ["lb_id=5f3a", "id=3", "uuid=3f9a", "ü=x"] {
        let refusal = refusal(text);
        assert!(refusal.contains("unknown field"), "{refusal}");
        assert!(!refusal.contains("did you mean"), "{refusal}");
    }
}

#[test]
fn expression_without_a_field_is_refused() {
    assert_eq!(
        refusal("!=bob"),
        "invalid filter `!=bob`: the field before `!=` is missing; the fields are name, state, \
         owner, priority, sequence, age, held, expires, attempts, size, trashed, ended, outcome, by, \
         action, reason, waited, took, exit_code, lb, amphora, details.PATH"
    );
}

#[test]
fn empty_path_part_is_refused() {
    assert_eq!(
        refusal("details.a..b=1"),
        "invalid filter `details.a..b=1`: `details.a..b` has an empty part; separate names and \
         array indexes with single dots"
    );
    assert!(refusal("details.=1").contains("empty part"));
    assert!(refusal("name.x=1").contains("unknown field `name.x`"));
}

#[test]
fn unsuitable_operator_lists_the_suitable_ones() {
    assert_eq!(
        refusal("age~5m"),
        "invalid filter `age~5m`: `~` does not work with age; use < <= > >=, or = and != with \
         `none`"
    );
    refused(
        r#"
        held=5m => `=` does not work with held; use < <= > >=
        expires!~5m => `!~` does not work with expires
        state>CLAIMED => `>` does not work with state; use = != ~ !~
        priority~HIGH => `~` does not work with priority; use = != < <= > >=
        sequence~1 => `~` does not work with sequence
        size!~1 => `!~` does not work with size
        "#,
    );
}

#[test]
fn only_text_values_may_be_empty() {
    assert_eq!(
        refusal("held>"),
        "invalid filter `held>`: the value after `>` is missing"
    );
    for text in "name~ | name<  | owner!~ | state= | size= | age< | details.x>=".split(" | ") {
        let refusal = refusal(text);
        assert!(refusal.contains("the value after"), "{refusal}");
    }
}

#[test]
fn value_of_the_wrong_type_shows_the_expected_type() {
    refused(
        r#"
        held>10 => `10` has no unit; write `10s` or `10m`, for example
        age>soon => `soon` is not a duration
        sequence=x => `x` is not a whole number
        attempts>1.5 => `1.5` is not a whole number
        sequence<none => `none` is not a whole number
        size>5k => `5k` is not a size; use a whole number of bytes, kB, MB
        size>1.5MiB => `1.5MiB` is not a size
        size>-1 => `-1` is not a size
        size>MB => `MB` is not a size
        state=claim => unknown state `claim` (valid: UNCLAIMED, CLAIMED
        state=CLAIMED,TRASHED => unexpected `,TRASHED`
        state=none => unknown state `none`
        priority>=URGENT => unknown priority `URGENT` (valid: VERY_HIGH
        priority=*HIGH => unknown priority `*HIGH`
        "#,
    );
}

#[test]
fn invalid_pattern_shows_the_reason() {
    refused(
        r#"
        name~( => invalid regular expression: unclosed group
        state~[z-a] => invalid regular expression: invalid character class range
        name~(?:x{1000}){1000}{1000} => invalid regular expression: Compiled regex exceeds
        name=a[ => invalid glob: `[` has no matching `]`; write `[[]` for a literal `[`
        name=[] => `[` has no matching `]`
        name=[!] => `[` has no matching `]`
        owner=[z-a]* => the range `z-a` is in reverse order
        "#,
    );
}
