//! Parsing expressions: `and`, quotes and surplus text.

use super::*;
use crate::tests::rows;

#[test]
fn and_requires_both_conditions() {
    matches(
        &claimed(),
        "state=CLAIMED and owner=worker-7 | state=CLAIMED  AND\tage>=1h and name=backup* | \
         name = \"backup/db-1\" and attempts=3 | details=none and owner~^(worker|w)-7$",
        "state=CLAIMED and owner=none | owner=none and state=CLAIMED",
    );
}

#[test]
fn conditions_report_the_data_they_need() {
    let filters = |text: &str| Filters::new(vec![text.parse().unwrap()]);
    let both = filters("name=a and details.x=1");
    assert!(both.needs_details() && !both.are_answered_by_events());
    assert!(filters("name=a and held>1m").change_with_time());
    assert!(filters("name=a and owner=b").are_answered_by_events());
}

#[test]
fn quoted_value_may_contain_anything() {
    for [name, expressions] in rows(
        r#"
        big resize => name="big resize" | name='big resize'
        a and b=c => name="a and b=c" | name = 'a and b=c'
        a, b => name="a, b" and owner=none | name='a, b'
        say "x" => name="say ""x""" | name='say "x"'
        it's => name=it's | name='it''s'
        web 1 => name="web *" | name~'^web \d$'
        "#,
    ) {
        matches(&named(name), expressions, "");
    }
    matches(&named(""), "name= | name=\"\"", "");
}

#[test]
fn value_may_contain_spaces_and_commas_in_brackets() {
    matches(
        &with(json!({"list": [1, 2], "text": "a, b", "open": "a[b"})),
        "details.list=[1,2] and owner=none | details.text~^(a, b|c)$ and owner=none | \
         details.text~^.{2,4}$ | details.open~\\[ and details.open~a(.|, ) | \
         details.open=a[[]b and owner=none | details~\"open\":\"a and owner=none",
        "",
    );
}

#[test]
fn trailing_text_is_refused() {
    let surplus = "name=a, owner=none | name=a,owner=none | name=a; owner=none | name=a owner=none | \
                   name=a && owner=none | name=a&&owner=none | name=a||owner=none | \
                   name=a android=1 | name=big resize | name=a[ b | name=\"a\"and owner=none";
    for text in surplus.split(" | ") {
        let refusal = text.parse::<Filter>().unwrap_err().to_string();
        assert!(refusal.contains("unexpected `"), "{refusal}");
    }
    let refusal = "name=a or owner=none".parse::<Filter>().unwrap_err();
    assert!(refusal.to_string().contains("filters have no `or`"));
}

#[test]
fn refusal_shows_the_correct_form() {
    for [text, message] in rows(
        r#"
        name=a, owner=none => unexpected `, owner=none` after `name=a`; join two conditions with `and`, or write name="a, owner=none" if it belongs to the value
        owner=none and name=say "x" => unexpected `"x"` after `name=say`; join two conditions with `and`, or write name="say ""x""" if it belongs to the value
        name='a' b => unexpected `b` after `name='a'`; join two conditions with `and`
        name=a and => the condition after the last `and` is missing
        name="a => `"a` has no closing quote; double a quote to include it in the value
        name=a and resize => the operator and the value are missing
        "#,
    ) {
        let refusal = text.parse::<Filter>().unwrap_err().to_string();
        assert!(refusal.contains(message), "{refusal}");
    }
    let advice: Filter = "name=\"a, owner=none\"".parse().unwrap();
    assert!(advice.matches(&named("a, owner=none"), now()));
}
