//! Text from files and file names, made fit for a terminal.

use std::fmt::{self, Display, Formatter, Write};

/// Displays its content with control characters written as escapes.
///
/// A field of a file that is quoted in a message could otherwise move the cursor, set colours or
/// rename the window (CWE-150). Escaped are the controls of ASCII and Latin-1, line ends and the
/// characters that turn the direction of writing; all other text stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Printable<T>(pub T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that escapes on the way.
struct Escaping<'a, 'b>(&'a mut Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_control) {
            let (before, from) = rest.split_at(at);
            self.0.write_str(before)?;
            let mut characters = from.chars();
            if let Some(control) = characters.next() {
                write!(self.0, "{}", control.escape_default())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_and_nothing_else() {
        let shown = |text: &str| Printable(text).to_string();
        assert_eq!(shown("a `b` é 日本 \\ \"q\""), "a `b` é 日本 \\ \"q\"");
        assert_eq!(shown("\x1b]0;PWNED\x07"), "\\u{1b}]0;PWNED\\u{7}");
        assert_eq!(shown("a\nb\r\tc\0"), "a\\nb\\r\\tc\\u{0}");
        assert_eq!(shown("\u{9b}31m\u{7f}"), "\\u{9b}31m\\u{7f}");
        assert_eq!(shown("\u{202e}txt.exe"), "\\u{202e}txt.exe");
        assert_eq!(shown(""), "");
    }
}
