//! Making a scenario that fails as short as it can be while it fails in the same way.

use crate::text::Text;

/// Takes away tables and keys, writes down flows that are drawn, and makes numbers smaller, as long as `fails` says that it still fails.
/// What `spelled` gives is tried in place of what it is given.
pub fn shrink(text: Text, spelled: impl Fn(&Text) -> Option<Text>, mut fails: impl FnMut(&Text) -> bool) -> Text {
    let text = shorten(text, &mut fails);
    match spelled(&text) {
        // Flows by themselves are better to read as long as they are few.
        Some(plain) if fails(&plain) => {
            let plain = shorten(plain, &mut fails);
            if plain.lines() <= text.lines() + FEW { plain } else { text }
        }
        _ => text,
    }
}

/// Lines that written flows may have more than drawn ones.
const FEW: usize = 12;

fn shorten(mut text: Text, mut fails: impl FnMut(&Text) -> bool) -> Text {
    loop {
        let before = text.clone();
        tables(&mut text, &mut fails);
        keys(&mut text, &mut fails);
        numbers(&mut text, &mut fails);
        if text == before {
            return text;
        }
    }
}

/// Tables: halves of what is left first, then smaller and smaller pieces.
fn tables(text: &mut Text, fails: &mut impl FnMut(&Text) -> bool) {
    let mut piece = text.0.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < text.0.len() {
            let mut shorter = text.clone();
            shorter.0.drain(at..(at + piece).min(text.0.len()));
            if fails(&shorter) {
                *text = shorter;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
}

fn keys(text: &mut Text, fails: &mut impl FnMut(&Text) -> bool) {
    for table in (0..text.0.len()).rev() {
        for key in (0..text.0[table].keys.len()).rev() {
            let mut shorter = text.clone();
            shorter.0[table].keys.remove(key);
            if fails(&shorter) {
                *text = shorter;
            }
        }
    }
}

/// Numbers: half of them, again and again.
fn numbers(text: &mut Text, fails: &mut impl FnMut(&Text) -> bool) {
    for table in 0..text.0.len() {
        for key in 0..text.0[table].keys.len() {
            while let Some(value) = half(&text.0[table].keys[key].1) {
                let mut smaller = text.clone();
                smaller.0[table].keys[key].1 = value;
                if !fails(&smaller) {
                    break;
                }
                *text = smaller;
            }
        }
    }
}

/// Half of a whole number above one, with its unit and quotes.
fn half(value: &str) -> Option<String> {
    let (quote, inner) = value.strip_prefix('"').map_or(("", value), |inner| ("\"", inner));
    let digits = inner.find(|c: char| !c.is_ascii_digit()).unwrap_or(inner.len());
    let (number, rest) = inner.split_at(digits);
    let unit = rest.strip_suffix('"').unwrap_or(rest);
    let number: u64 = number.parse().ok().filter(|number| *number > 1 && unit.chars().all(char::is_alphabetic))?;
    Some(format!("{quote}{}{rest}", number / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_it_takes_to_fail() {
        let flow = |src: u32| format!("[[flow]]\nsrc = {src}\ndst = 0\nsize = \"9000B\"\n");
        let text: String = (1..9).map(flow).collect();
        let text = Text::parse(&format!("seed = 9\n[switch]\nalpha = 0.5\nqueues = 3\n{text}"));
        let fails = |text: &Text| {
            let text = text.to_string();
            text.contains("alpha") && text.contains("src = 5") && text.contains("[[flow]]")
        };
        assert_eq!(shrink(text, |_| None, fails).to_string(), "[switch]\nalpha = 0.5\n[[flow]]\nsrc = 5\n");
    }

    #[test]
    fn numbers_with_units_are_halved_and_names_are_not() {
        let halves = ["7", "\"900us\"", "\"h4\"", "1", "0.5", "\"1.5us\"", "[[\"4us\"]]"].map(half);
        let left = [Some("3"), Some("\"450us\""), None, None, None, None, None];
        assert_eq!(halves.each_ref().map(Option::as_deref), left);
    }
}
