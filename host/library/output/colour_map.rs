//! The colours of shades.

use std::fmt;
use std::str::FromStr;

/// Map from a shade between 0 and 1 to a colour. All but [`ColourMap::Turbo`] grow steadily
/// brighter, and can be read by the colour-blind and in print.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ColourMap {
    /// Black, purple, orange, pale yellow.
    #[default]
    Inferno,
    /// Black, purple, pink, cream.
    Magma,
    /// Blue, purple, orange, yellow.
    Plasma,
    /// Purple, green, yellow.
    Viridis,
    /// Blue, grey, yellow.
    Cividis,
    /// Black, green, pink, white, in a helix.
    Cubehelix,
    /// All colours of the rainbow; brightest in the middle.
    Turbo,
    /// Black to white.
    Grey,
}

impl ColourMap {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Inferno,
        Self::Magma,
        Self::Plasma,
        Self::Viridis,
        Self::Cividis,
        Self::Cubehelix,
        Self::Turbo,
        Self::Grey,
    ];

    /// The name by which [`FromStr`] knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inferno => "inferno",
            Self::Magma => "magma",
            Self::Plasma => "plasma",
            Self::Viridis => "viridis",
            Self::Cividis => "cividis",
            Self::Cubehelix => "cubehelix",
            Self::Turbo => "turbo",
            Self::Grey => "grey",
        }
    }

    /// Red, green and blue of a shade; what is below 0 counts as 0, above 1 as 1.
    pub fn colour(self, shade: f64) -> [u8; 3] {
        let shade = shade.clamp(0.0, 1.0);
        let gradient = match self {
            Self::Inferno => colorous::INFERNO,
            Self::Magma => colorous::MAGMA,
            Self::Plasma => colorous::PLASMA,
            Self::Viridis => colorous::VIRIDIS,
            Self::Cividis => colorous::CIVIDIS,
            Self::Cubehelix => colorous::CUBEHELIX,
            Self::Turbo => colorous::TURBO,
            Self::Grey => return [(255.0 * shade).round() as u8; 3],
        };
        gradient.eval_continuous(shade).as_array()
    }

    /// Colours in `steps` even steps, at least two.
    pub(super) fn steps(self, steps: usize) -> Vec<[u8; 3]> {
        (0..steps)
            .map(|i| self.colour(i as f64 / (steps - 1) as f64))
            .collect()
    }
}

impl fmt::Display for ColourMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No colour map has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no colour map `{0}`; there are {names}",
    names = ColourMap::ALL.map(ColourMap::name).join(", ")
)]
pub struct UnknownColourMap(String);

impl FromStr for ColourMap {
    type Err = UnknownColourMap;

    fn from_str(name: &str) -> Result<Self, UnknownColourMap> {
        Self::ALL
            .into_iter()
            .find(|map| map.name() == name)
            .ok_or_else(|| UnknownColourMap(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_found_by_name_and_grow_brighter() {
        // Luminance of sRGB primaries, close enough without undoing the gamma curve.
        let luma = |[r, g, b]: [u8; 3]| {
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        for map in ColourMap::ALL {
            assert_eq!(map.name().parse(), Ok(map));
            if map == ColourMap::Turbo {
                continue;
            }
            let steps = map.steps(32);
            for pair in steps.windows(2) {
                assert!(luma(pair[1]) >= luma(pair[0]) - 1.0, "{map}: {pair:?}");
            }
            assert_eq!(map.colour(-1.0), steps[0]);
            assert_eq!(map.colour(2.0), steps[31]);
        }
        assert!("rainbow".parse::<ColourMap>().is_err());
    }
}
