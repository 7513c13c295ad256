//! Tests the contrast of the page's colours, in light and dark mode.

use std::collections::HashMap;

const STYLE: &str = include_str!("../style.css");

const LETTERS: [&str; 6] = ["ink", "soft", "link", "bad", "warn", "good"];
const BEHIND: [&str; 2] = ["paper", "sunk"];

const SHAPES: [&str; 6] = ["unclaimed", "claimed", "gone", "bad", "warn", "good"];

fn colours(style: &str) -> HashMap<&str, [f64; 3]> {
    let (_, style) = style.split_once(":root {").unwrap();
    let (style, _) = style.split_once('}').unwrap();
    let lines = style.lines().filter_map(|line| {
        let (name, value) = line.trim().strip_prefix("--")?.split_once(": #")?;
        let value = u32::from_str_radix(value.trim_end_matches(';'), 16).unwrap();
        let part = |shift: u32| f64::from((value >> shift) & 0xff) / 255.0;
        Some((name, [part(16), part(8), part(0)]))
    });
    lines.collect()
}

fn luminance(colour: [f64; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| match part <= 0.040_45 {
        true => part / 12.92,
        false => ((part + 0.055) / 1.055).powf(2.4),
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [one, other] = [one, other].map(luminance);
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn contrast_is_sufficient() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
    for colours in [light, dark].map(colours) {
        assert_eq!(colours.len(), 12, "{colours:?}");
        for letters in LETTERS {
            for behind in BEHIND {
                let found = contrast(colours[letters], colours[behind]);
                assert!(found >= 4.5, "{letters} on {behind}: {found:.2}");
            }
        }
        for shape in SHAPES {
            let found = contrast(colours[shape], colours["paper"]);
            assert!(found >= 3.0, "{shape}: {found:.2}");
        }
    }
}

#[test]
fn only_named_colours_are_used() {
    let outside = STYLE.lines().filter(|line| !line.trim().starts_with("--"));
    for line in outside {
        assert!(!line.contains('#') || line.contains("url(#"), "{line}");
    }
}
