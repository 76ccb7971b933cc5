//! Products and distances of vectors in space.

/// Something of each axis.
///
/// The compiler inlines it also where it calls `map` of an array: without link-time optimisation.
#[inline(always)]
pub(crate) fn axes<T>(mut of: impl FnMut(usize) -> T) -> [T; 3] {
    [of(0), of(1), of(2)]
}

/// `a − b`.
#[inline]
pub(crate) fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    axes(|k| a[k] - b[k])
}

/// `a · b`.
#[inline]
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// `a × b`.
#[inline]
pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    axes(|k| {
        let (l, m) = ((k + 1) % 3, (k + 2) % 3);
        a[l] * b[m] - a[m] * b[l]
    })
}

/// `|a − b|`, of vectors of any length.
pub(crate) fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1]).hypot(a[2] - b[2])
}
