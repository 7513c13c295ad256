//! Filters on details.

use super::*;

#[test]
fn details_are_reached_by_names_and_indexes() {
    matches(
        &with(json!({"a": [{"b": "x"}, "y"], "0": {"1": "z"}, "n": null})),
        "details.a.0.b=x | details.a.1=y | details.0.1=z | details.a.2=none | details.a.b=none | \
         details.a.1.c=none | details.n=none | details.A=none | details.a!=none",
        "details.a.-1=y | details.n=null | details.n!=none",
    );
    let holding = "details=none | details.a=none | details.a!=x";
    matches(&unclaimed(), holding, "");
}

#[test]
fn details_that_are_not_text_compare_as_compact_json() {
    matches(
        &with(json!({
            "t": true, "i": 5, "f": 1.5, "a": [1, 2], "s": [1, "b-a"], "o": {"k": "v", "l": {}},
        })),
        "details.t=true | details.i=5 | details.f=1.5 | details.a=[1,2] | \
         details.o={\"k\":\"v\",\"l\":{}} | details.o={*} | details.o.l={} | details.o~\"k\": | \
         details.s=*b-a* | details=*\"i\":5* | details~'^\\{\"t\":true,'",
        "details.i=5.0 | details.t=1 | details.a=[1, 2]",
    );
}

#[test]
fn numbers_in_details_compare_numerically() {
    matches(
        &with(json!({
            "i": 10, "f": 2.5, "big": u64::MAX, "s": "10", "none": "none", "low": i64::MIN,
        })),
        "details.i>9 | details.i>=10.0 | details.i<1e3 | details.f<10 | details.f>-3 | \
         details.big>18446744073709551614 | details.big<=18446744073709551615 | details.low<0 | \
         details.s<9 | details.s>=10 | details.i<9x | details.i<inf | details.none!=none",
        "details.i<9 | details.i>10 | details.big>18446744073709551615 | details.s>9 | \
         details.x<9 | details.x>=a | details.none=none",
    );
}
