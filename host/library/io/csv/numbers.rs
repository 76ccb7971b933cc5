//! Numbers as text.

/// A number as Rust writes it, or as Fortran does: `1.5D-02`, and `0.15-101` where the exponent has three digits.
pub(super) fn number(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    // Longer ones are no numbers of Fortran's.
    const LONGEST: usize = 64;
    if !text.is_ascii() || text.len() > LONGEST {
        return None;
    }
    let digits = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+')
    };
    let (mantissa, exponent) = match text.split_once(['D', 'd', 'Q', 'q']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => text.split_at(text.rfind(['+', '-']).filter(|at| *at > 0)?),
    };
    let is_number = digits(mantissa) && digits(exponent) && !mantissa.contains(['e', 'E']);
    is_number.then(|| format!("{mantissa}e{exponent}").parse().ok())?
}

/// A whole number from 0 on, also as `numpy.savetxt` writes it: `1.200000000000000000e+01`.
pub(super) fn whole(text: &str) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let real =
        || number(text).filter(|value| (0.0..=EXACT).contains(value) && value.fract() == 0.0);
    text.parse()
        .ok()
        .or_else(|| real().map(|value| value as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_fortran_are_read() {
        for (text, value) in [
            ("0.1D-01", 0.01),
            ("-1.5d+02", -150.0),
            ("1D0", 1.0),
            ("0.25-100", 0.25e-100),
            ("-0.25+101", -0.25e101),
            ("1e3", 1e3),
            ("-.5D0", -0.5),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in [
            "", "D", "D5", "1D", "1-", "-", "1e5-3", "x-5", "1D2D3", "12/3", "day",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(whole("1.2e1"), Some(12));
        assert_eq!(whole("18446744073709551615"), Some(u64::MAX));
        assert_eq!([whole("1.5"), whole("-1"), whole("1e300")], [None; 3]);
    }
}
