//! What is not a filter, and what its writer is told.

use super::*;

fn refusal(expression: &str) -> String {
    expression.parse::<Filter>().unwrap_err().to_string()
}

#[test]
fn an_expression_needs_an_operator() {
    assert_eq!(
        refusal("resize"),
        "`resize` is not a filter: it lacks an operator: write FIELD OP VALUE with one of \
         = != ~ !~ < <= > >="
    );
    for text in ["", " "] {
        assert_eq!(
            refusal(text),
            "an empty text is not a filter: write FIELD OP VALUE, such as held>10m"
        );
    }
}

#[test]
fn unknown_operators_are_told_the_known_ones() {
    assert_eq!(
        refusal("name==a"),
        "`name==a` is not a filter: unknown operator `==`: it is one of = != ~ !~ < <= > >=; a \
         value that begins with such a character takes a space before it"
    );
    for (text, operator) in [
        ("name=~a", "=~"),
        ("name!a", "!"),
        ("name<>a", "<>"),
        ("age=>1m", "=>"),
        ("name!==a", "!=="),
    ] {
        let refusal = refusal(text);
        assert!(
            refusal.contains(&format!("unknown operator `{operator}`:")),
            "{refusal}"
        );
    }
}

#[test]
fn unknown_fields_are_told_the_known_ones() {
    assert_eq!(
        refusal("onwer=bob"),
        "`onwer=bob` is not a filter: unknown field `onwer` (perhaps `owner`): it is one of name \
         state owner priority sequence age held expires attempts size trashed ended outcome by action reason waited took exit_code lb amphora details.PATH"
    );
    for (text, nearest) in [
        ("status=claimed", "state"),
        ("Name=x", "name"),
        ("attempt>3", "attempts"),
        ("expiry<1m", "expires"),
        ("detail=x", "details"),
        ("na me=x", "name"),
    ] {
        let refusal = refusal(text);
        assert!(
            refusal.contains(&format!("(perhaps `{nearest}`)")),
            "{refusal}"
        );
    }
    for text in ["lb_id=5f3a", "id=3", "uuid=3f9a", "ü=x"] {
        let refusal = refusal(text);
        assert!(refusal.contains("unknown field"), "{refusal}");
        assert!(!refusal.contains("perhaps"), "{refusal}");
    }
}

#[test]
fn an_expression_needs_a_field() {
    assert_eq!(
        refusal("!=bob"),
        "`!=bob` is not a filter: it lacks a field before `!=`: write one of name state owner \
         priority sequence age held expires attempts size trashed ended outcome by action reason waited took exit_code lb amphora details.PATH"
    );
}

#[test]
fn paths_have_no_empty_parts() {
    assert_eq!(
        refusal("details.a..b=1"),
        "`details.a..b=1` is not a filter: `details.a..b` has an empty part: write names and \
         array indexes with dots between"
    );
    assert!(refusal("details.=1").contains("empty part"));
    assert!(refusal("name.x=1").contains("unknown field `name.x`"));
}

#[test]
fn operators_that_make_no_sense_are_told_those_that_do() {
    assert_eq!(
        refusal("age~5m"),
        "`age~5m` is not a filter: `~` does not go with age: use < <= > >=, or = and != with `none`"
    );
    for (text, part) in [
        ("held=5m", "`=` does not go with held: use < <= > >="),
        ("expires!~5m", "`!~` does not go with expires"),
        ("state>CLAIMED", "`>` does not go with state: use = != ~ !~"),
        (
            "priority~HIGH",
            "`~` does not go with priority: use = != < <= > >=",
        ),
        ("sequence~1", "`~` does not go with sequence"),
        ("size!~1", "`!~` does not go with size"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn only_texts_may_be_empty() {
    assert_eq!(
        refusal("held>"),
        "`held>` is not a filter: it lacks a value behind `>`"
    );
    for text in [
        "name~",
        "name< ",
        "owner!~",
        "state=",
        "size=",
        "age<",
        "details.x>=",
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains("it lacks a value"), "{refusal}");
    }
}

#[test]
fn values_of_the_wrong_type_are_told_what_would_be_right() {
    for (text, part) in [
        ("held>10", "`10` lacks a unit: write `10s` or `10m`"),
        ("age>soon", "`soon` is not a duration"),
        ("sequence=x", "`x` is not a whole number"),
        ("attempts>1.5", "`1.5` is not a whole number"),
        ("sequence<none", "`none` is not a whole number"),
        (
            "size>5k",
            "`5k` is not a size: write bytes, or whole kB, MB",
        ),
        ("size>1.5MiB", "`1.5MiB` is not a size"),
        ("size>-1", "`-1` is not a size"),
        ("size>MB", "`MB` is not a size"),
        (
            "state=claim",
            "unknown state `claim`: it is one of UNCLAIMED, CLAIMED",
        ),
        ("state=CLAIMED,TRASHED", "`,TRASHED` is left over"),
        ("state=none", "unknown state `none`"),
        (
            "priority>=URGENT",
            "unknown priority `URGENT`: it is one of VERY_HIGH",
        ),
        ("priority=*HIGH", "unknown priority `*HIGH`"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn wrong_patterns_are_told_what_is_wrong() {
    for (text, part) in [
        ("name~(", "the regular expression is wrong: unclosed group"),
        (
            "state~[z-a]",
            "the regular expression is wrong: invalid character class range",
        ),
        (
            "name~(?:x{1000}){1000}{1000}",
            "the regular expression is wrong: Compiled regex exceeds",
        ),
        (
            "name=a[",
            "the glob is wrong: `[` lacks its `]`; a `[` that is meant as such",
        ),
        ("name=[]", "`[` lacks its `]`"),
        ("name=[!]", "`[` lacks its `]`"),
        ("owner=[z-a]*", "the range `z-a` runs backwards"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(part), "{refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}
