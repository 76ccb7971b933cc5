//! Do layouts say where their values lie?

use super::*;

/// The fields of bodies lie in the arrays that the layout says, each body in its own part of one.
fn fields_lie_in_planes<L: Layout>() {
    const STRIDE: u32 = 64;
    assert_eq!(L::PLANES.iter().sum::<u32>(), L::STATE_SCALARS);
    for i in [0, 1, 33, STRIDE - 1] {
        for field in Field::ALL {
            let at = L::scalar(field, STRIDE, i) as u32;
            let mut first = 0;
            let found = L::PLANES.iter().any(|width| {
                let part = first + i * width..first + (i + 1) * width;
                first += STRIDE * width;
                part.contains(&at)
            });
            assert!(found, "{field:?} of body {i} at {at}");
        }
    }
}

#[test]
fn planes_hold_the_fields() {
    fields_lie_in_planes::<Aos<f32>>();
    fields_lie_in_planes::<Soa<f32>>();
    fields_lie_in_planes::<Float3<f32>>();
    fields_lie_in_planes::<Float4<f32>>();
}
