//! Axes: positions of values, and the labels next to the axis.

/// Spacing of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal distances are equal differences.
    Linear,
    /// Equal distances are equal ratios.
    Log,
}

/// An axis over a range of values that can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    scale: Scale,
    low: f64,
    high: f64,
    /// Ticks that were asked for.
    ticks: Option<Vec<Tick>>,
}

/// A value with a grid line, and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Value at which it stands.
    pub value: f64,
    /// Label; empty for a minor tick.
    pub text: String,
}

impl Axis {
    /// An axis over these values with a margin; `None` if none of them can be drawn on it.
    pub fn over(
        label: impl Into<String>,
        scale: Scale,
        values: impl Iterator<Item = f64>,
    ) -> Option<Self> {
        let mut range: Option<[f64; 2]> = None;
        for value in values.filter(|v| v.is_finite() && (scale == Scale::Linear || *v > 0.0)) {
            let [low, high] = range.unwrap_or([value; 2]);
            range = Some([low.min(value), high.max(value)]);
        }
        let [low, high] = range?;
        let (low, high) = match scale {
            Scale::Linear if low == high => (low - 0.5 * spread(low), high + 0.5 * spread(high)),
            Scale::Linear => {
                let margin = 0.04 * (high - low);
                (low - margin, high + margin)
            }
            Scale::Log => {
                let factor = (high / low).powf(0.05).max(1.25);
                (low / factor, high * factor)
            }
        };
        Some(Self {
            label: label.into(),
            scale,
            low,
            high,
            ticks: None,
        })
    }

    /// Returns the axis with these ticks, written in full.
    pub(crate) fn with_ticks(self, values: &[f64]) -> Self {
        let ticks = values.iter().map(|value| Tick {
            value: *value,
            text: value.to_string(),
        });
        Self {
            ticks: Some(ticks.collect()),
            ..self
        }
    }

    /// The axis over this range as it is.
    pub fn exactly(label: impl Into<String>, low: f64, high: f64) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            low,
            high,
            ticks: None,
        }
    }

    /// The smallest and the largest value.
    pub fn range(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Position of a value between the ends, 0 and 1; `None` for a value that has none.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        place.is_finite().then_some(place)
    }

    /// About `wanted` ticks, and the power of ten that the label has to name, if one.
    pub fn ticks(&self, wanted: usize) -> (Vec<Tick>, Option<i32>) {
        if let Some(ticks) = &self.ticks {
            return (ticks.clone(), None);
        }
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, wanted),
            Scale::Log => (log_ticks(self.low, self.high, wanted), None),
        }
    }
}

fn spread(value: f64) -> f64 {
    if value == 0.0 { 1.0 } else { value.abs() }
}

fn linear_ticks(low: f64, high: f64, wanted: usize) -> (Vec<Tick>, Option<i32>) {
    let raw = (high - low) / wanted.max(1) as f64;
    let power = 10.0_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= 0.999 * raw)
        .unwrap_or(10.0 * power);
    let largest = low.abs().max(high.abs());
    let exponent = largest.log10().floor() as i32;
    let shift = if (-3..5).contains(&exponent) {
        None
    } else {
        Some(exponent)
    };
    let unit = 10.0_f64.powi(shift.unwrap_or(0));
    let decimals = (-(step / unit * 1.001).log10().floor()).clamp(0.0, 12.0) as usize;
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    let tick = |k: i64| {
        let value = k as f64 * step;
        let text = format!("{:.decimals$}", value / unit).replace('-', "−");
        Tick { value, text }
    };
    (
        (first..=last.min(first.saturating_add(50)))
            .map(tick)
            .collect(),
        shift,
    )
}

fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let span = (high / low).log10();
    let within = |value: &f64| (low..=high).contains(value);
    // Two ticks alone would leave most of the axis to be guessed.
    let powers = decades.clone().map(|power| 10.0_f64.powi(power));
    let values: Vec<f64> = if powers.filter(within).count() > 2 {
        let every = (span / wanted.max(1) as f64).ceil().max(1.0) as i32;
        decades
            .filter(|power| power.rem_euclid(every) == 0)
            .map(|power| 10.0_f64.powi(power))
            .filter(within)
            .collect()
    } else {
        let digits: &[f64] = if span > 0.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        };
        decades
            .flat_map(|power| digits.iter().map(move |digit| digit * 10.0_f64.powi(power)))
            .filter(within)
            .collect()
    };
    let tick = |value: f64| Tick {
        value,
        text: short(value),
    };
    values.into_iter().map(tick).collect()
}

/// A value in few characters: `0.05`, `10⁻⁷`, `2.5×10¹¹`.
pub fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if (1e-3..1e5).contains(&value.abs()) {
        // Three significant digits, without the zeros at the end.
        let decimals = (2 - value.abs().log10().floor() as i32).max(0) as usize;
        let text = format!("{value:.decimals$}");
        let text = match text.split_once('.') {
            Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
            None => &text,
        };
        return text.replace('-', "−");
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits
        .trim_end_matches('0')
        .trim_end_matches('.')
        .replace('-', "−");
    let power = power_of_ten(exponent.parse().unwrap_or(0));
    match digits.as_str() {
        "1" => power,
        _ => format!("{digits}×{power}"),
    }
}

/// `10⁻³`.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    let raised = |c| match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    };
    format!(
        "10{}",
        exponent.to_string().chars().map(raised).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::exactly("", -0.2, 1.05);
        let (ticks, shift) = axis.ticks(6);
        assert_eq!(texts(&ticks), ["0.0", "0.5", "1.0"]);
        assert_eq!(shift, None);
        let (ticks, shift) = Axis::exactly("", 0.0, 4.1e12).ticks(4);
        assert_eq!((texts(&ticks), shift), (vec!["0", "2", "4"], Some(12)));
    }

    #[test]
    fn log_ticks_are_decades_or_parts_of_them() {
        let axis = |values: [f64; 2]| Axis::over("", Scale::Log, values.into_iter()).unwrap();
        let (ticks, _) = axis([1e-15, 1e-3]).ticks(6);
        assert_eq!(texts(&ticks), ["10⁻¹⁵", "10⁻¹²", "10⁻⁹", "10⁻⁶", "0.001"]);
        let (ticks, _) = axis([2e11, 2e12]).ticks(6);
        assert_eq!(texts(&ticks), ["2×10¹¹", "5×10¹¹", "10¹²", "2×10¹²"]);
        let (ticks, _) = axis([0.16, 11.9]).ticks(6);
        assert_eq!(texts(&ticks), ["0.2", "0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn values_without_a_place_are_left_out() {
        let axis = Axis::over(
            "",
            Scale::Log,
            [0.0, f64::NAN, -1.0, 1.0, 100.0].into_iter(),
        )
        .unwrap();
        assert_eq!(
            (axis.place(0.0), axis.place(-1.0), axis.place(f64::NAN)),
            (None, None, None)
        );
        assert!((axis.place(10.0).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(Axis::over("", Scale::Log, [0.0].into_iter()), None);
        let single = Axis::over("", Scale::Linear, [3.0].into_iter()).unwrap();
        assert_eq!(single.place(3.0), Some(0.5));
    }

    #[test]
    fn short_numbers() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.05, "0.05"),
            (1234.0, "1234"),
            (-2.5, "−2.5"),
            (1e-7, "10⁻⁷"),
            (2.5e11, "2.5×10¹¹"),
            (-3e-5, "−3×10⁻⁵"),
            (36.2465, "36.2"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
