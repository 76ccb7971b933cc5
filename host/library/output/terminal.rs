//! Pictures made of characters, for terminals: each shows two pixels, one above the other, as the
//! foreground and the background of `▀`.

use super::Image;

/// Encoding of colours for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalColours {
    /// By its red, green and blue, each of 256 steps.
    True,
    /// As the nearest of a cube of 216, which almost all terminals have.
    Indexed,
}

impl TerminalColours {
    /// By what the environment variable `COLORTERM` holds: `truecolor` or `24bit`.
    pub fn of_variable(value: &str) -> Self {
        match value {
            "truecolor" | "24bit" => Self::True,
            _ => Self::Indexed,
        }
    }

    /// The parameters of a control sequence that sets this colour, after 38 or 48.
    fn parameters(self, rgb: [u8; 3]) -> String {
        let [r, g, b] = rgb;
        match self {
            Self::True => format!("2;{r};{g};{b}"),
            Self::Indexed => {
                let [r, g, b] = rgb.map(step_of_cube);
                format!("5;{}", 16 + 36 * r + 6 * g + b)
            }
        }
    }
}

/// The nearest of a cube's steps, which are 0, 95, 135, 175, 215 and 255.
fn step_of_cube(value: u8) -> u32 {
    match value {
        0..48 => 0,
        48..115 => 1,
        _ => (u32::from(value) - 35) / 40,
    }
}

impl Image {
    /// The picture as lines of characters: as many characters as its width, as many lines as half
    /// its height, rounded up. What follows a line has the terminal's own colours again.
    pub fn terminal_lines(&self, colours: TerminalColours) -> Vec<String> {
        let pixel = |x: u32, y: u32| -> Option<[u8; 3]> {
            let start = 3 * (y * self.width + x) as usize;
            let bytes = self.rgb.get(start..start + 3)?;
            bytes.try_into().ok()
        };
        let line = |y: u32| {
            let (mut line, mut last) = (String::new(), None);
            for x in 0..self.width {
                let top = pixel(x, y).unwrap_or_default();
                let bottom = pixel(x, y + 1).unwrap_or_default();
                let (top, bottom) = (colours.parameters(top), colours.parameters(bottom));
                let both = format!("\x1b[38;{top};48;{bottom}m");
                if last.as_ref() != Some(&both) {
                    line += &both;
                }
                last = Some(both);
                line.push('▀');
            }
            line + "\x1b[0m"
        };
        (0..self.height).step_by(2).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_shows_two_pixels() {
        let image = Image {
            width: 2,
            height: 3,
            rgb: [
                [255, 0, 0],
                [0, 0, 255],
                [0, 0, 0],
                [0, 0, 255],
                [1, 2, 3],
                [1, 2, 3],
            ]
            .concat(),
        };
        let lines = image.terminal_lines(TerminalColours::True);
        assert_eq!(
            lines,
            [
                "\x1b[38;2;255;0;0;48;2;0;0;0m▀\x1b[38;2;0;0;255;48;2;0;0;255m▀\x1b[0m",
                "\x1b[38;2;1;2;3;48;2;0;0;0m▀▀\x1b[0m", // an odd row has darkness below
            ]
        );
        let lines = image.terminal_lines(TerminalColours::Indexed);
        assert_eq!(
            lines[0],
            "\x1b[38;5;196;48;5;16m▀\x1b[38;5;21;48;5;21m▀\x1b[0m"
        );
    }

    #[test]
    fn the_cube_has_the_nearest_colour() {
        const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
        for value in 0..=255_u8 {
            let off = |step: i32| (step - i32::from(value)).abs();
            let nearest = STEPS.map(off).into_iter().min().unwrap();
            assert_eq!(off(STEPS[step_of_cube(value) as usize]), nearest, "{value}");
        }
        assert_eq!(TerminalColours::of_variable("24bit"), TerminalColours::True);
        assert_eq!(TerminalColours::of_variable(""), TerminalColours::Indexed);
    }
}
