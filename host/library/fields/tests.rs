//! Fields beside galpy's, their derivatives beside differences, orbits that must close.

use std::f64::consts::TAU;

use super::*;
use crate::backend::{Backend, ForceError};
use crate::bodies::{Bodies, Body, BodyKind};
use crate::force::cpu::Cpu;
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};
use crate::rules::{self, Needs, Offer};
use crate::selection::{DeviceChoice, Place};
use crate::simulation::{Simulation, SimulationBuilder};
use crate::units::Units;
use crate::variants;
use crate::variants::preferred::ForceAccuracy;

const GRAVITY: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.0,
};

/// Position, acceleration and potential.
type Row = ([f64; 3], [f64; 3], f64);

/// Values of galpy 1.12.1 (numpy 2.4.6, scipy 1.17.1), in units in which G = 1, and of MWPotential2014 in
/// units of 8 kpc and 220 km/s. Potentials of the power law, and so of MWPotential2014, are from another
/// zero.
#[rustfmt::skip]
const GALPY: [(&str, [Row; 6]); 9] = [
    (
        "point",
        [
            ([0.05, 0.02, 0.01], [-395.57740264262003, -158.230961057048, -79.115480528524], -23.7346441585572),
            ([0.3, -0.2, 0.1], [-7.4451345961318225, 4.963423064087882, -2.481711532043941], -3.4743961448615175),
            ([1.0, 0.0, 0.5], [-0.9302042786399125, -0.0, -0.46510213931995625], -1.1627553482998907),
            ([-0.9, 1.1, -0.4], [0.36349724308713643, -0.44427440821761127, 0.16155433026094954], -0.8804710999221752),
            ([3.0, 4.0, 2.0], [-0.024972821341051797, -0.0332970951214024, -0.0166485475607012], -0.24140393963016743),
            ([0.0, -12.0, 9.0], [-0.0, 0.004622222222222223, -0.0034666666666666665], -0.08666666666666667),
        ],
    ),
    (
        "plummer",
        [
            ([0.05, 0.02, 0.01], [-0.18777725138556056, -0.07511090055422422, -0.03755545027711211], -1.8514836986616268),
            ([0.3, -0.2, 0.1], [-0.7799266903365009, 0.5199511268910006, -0.2599755634455003], -1.6378460497066516),
            ([1.0, 0.0, 0.5], [-0.5663950900302152, -0.0, -0.2831975450151076], -0.9855274566525745),
            ([-0.9, 1.1, -0.4], [0.26817542014743906, -0.3277699579579811, 0.11918907562108402], -0.795587079770736),
            ([3.0, 4.0, 2.0], [-0.02435299884693034, -0.032470665129240454, -0.016235332564620227], -0.23938997866532524),
            ([0.0, -12.0, 9.0], [-0.0, 0.004607163962323872, -0.0034553729717429035], -0.08657245015536748),
        ],
    ),
    (
        "hernquist",
        [
            ([0.05, 0.02, 0.01], [-2.083151586035422, -0.8332606344141686, -0.4166303172070845], -1.7223738552860957),
            ([0.3, -0.2, 0.1], [-0.9033540520720548, 0.6022360347147033, -0.3011180173573517], -1.2102415420553934),
            ([1.0, 0.0, 0.5], [-0.35179069605576485, -0.0, -0.17589534802788243], -0.7150581386511359),
            ([-0.9, 1.1, -0.4], [0.1672812762553787, -0.2044548932010184, 0.07434723389127941], -0.5972940815564154),
            ([3.0, 4.0, 2.0], [-0.019557841321936935, -0.02607712176258258, -0.013038560881291288], -0.21363431249648737),
            ([0.0, -12.0, 9.0], [-0.0, 0.004219238102965637, -0.003164428577224228], -0.08280254777070065),
        ],
    ),
    (
        "nfw",
        [
            ([0.05, 0.02, 0.01], [-1.094877794591884, -0.43795111783675356, -0.21897555891837672], -1.7880665229616084),
            ([0.3, -0.2, 0.1], [-0.5947751989775603, 0.39651679931837347, -0.1982583996591868], -1.487803301578255),
            ([1.0, 0.0, 0.5], [-0.31576894960832014, -0.0, -0.15788447480416007], -1.109769325661536),
            ([-0.9, 1.1, -0.4], [0.16575648270171572, -0.20259125663543037, 0.07366954786742921], -0.9987931174339048),
            ([3.0, 4.0, 2.0], [-0.03190434293015677, -0.04253912390687569, -0.021269561953437842], -0.5220429608213362),
            ([0.0, -12.0, 9.0], [-0.0, 0.009960526707983586, -0.007470395030987689], -0.26956242354539284),
        ],
    ),
    (
        "miyamoto-nagai",
        [
            ([0.05, 0.02, 0.01], [-0.08861297658497624, -0.03544519063399049, -0.07967428765041612], -1.4414669029098819),
            ([0.3, -0.2, 0.1], [-0.4001303701927833, 0.26675358012852224, -0.5509121869504301], -1.3111598903167183),
            ([1.0, 0.0, 0.5], [-0.32229473668089836, -0.0, -0.37061757376270077], -0.8166700695818111),
            ([-0.9, 1.1, -0.4], [0.19201159717689623, -0.2346808409939843, 0.2189143492471062], -0.7117441153344733),
            ([3.0, 4.0, 2.0], [-0.021201896786166373, -0.028269195714888496, -0.019057155545331057], -0.228584470424227),
            ([0.0, -12.0, 9.0], [-0.0, 0.004245168378413804, -0.003431449984120739], -0.08424292929267292),
        ],
    ),
    (
        "isochrone",
        [
            ([0.05, 0.02, 0.01], [-0.04708769099323382, -0.01883507639729353, -0.009417538198646764], -0.9271544800606103),
            ([0.3, -0.2, 0.1], [-0.22021799497116556, 0.1468119966474437, -0.07340599832372185], -0.8703072236799311),
            ([1.0, 0.0, 0.5], [-0.24174478613455425, -0.0, -0.12087239306727712], -0.6438542196603836),
            ([-0.9, 1.1, -0.4], [0.1314387793258086, -0.1606473969537661, 0.05841723525591495], -0.5569805059577362),
            ([3.0, 4.0, 2.0], [-0.019109078098881516, -0.025478770798508688, -0.012739385399254342], -0.21205553347725659),
            ([0.0, -12.0, 9.0], [-0.0, 0.00420590039374458, -0.003154425295308434], -0.08271654126903917),
        ],
    ),
    (
        "logarithmic",
        [
            ([0.05, 0.02, 0.01], [-0.6501444019074485, -0.26005776076297943, -0.20317012559607764], -1.4366034336260503),
            ([0.3, -0.2, 0.1], [-1.5405835543766584, 1.0270557029177723, -0.8023872679045094], -0.8745358010718167),
            ([1.0, 0.0, 0.5], [-0.8172224567327987, -0.0, -0.638455044322499], 0.23744089903820234),
            ([-0.9, 1.1, -0.4], [0.4614406779661017, -0.5639830508474577, 0.32044491525423724], 0.519490279517699),
            ([3.0, 4.0, 2.0], [-0.11582641991065731, -0.1544352265475431, -0.12065252074026803], 2.0841616183413647),
            ([0.0, -12.0, 9.0], [-0.0, 0.05364812813478539, -0.06286890015795162], 3.3885056046844984),
        ],
    ),
    (
        "power-law",
        [
            ([0.05, 0.02, 0.01], [-95.7547108590532, -38.301884343621275, -19.15094217181064], 29.237845900503405),
            ([0.3, -0.2, 0.1], [-9.312114006681757, 6.2080760044545045, -3.1040380022272527], 40.44242295490401),
            ([1.0, 0.0, 0.5], [-1.2078669716793113, -0.0, -0.6039334858396557], 43.42289469446292),
            ([-0.9, 1.1, -0.4], [0.4719998868369107, -0.5768887505784465, 0.2097777274830714], 43.78943979438638),
            ([3.0, 4.0, 2.0], [-0.03242712034585985, -0.043236160461146464, -0.021618080230573232], 44.61926624582581),
            ([0.0, -12.0, 9.0], [-0.0, 0.00600193923699431, -0.004501454427745732], 44.82019204847548),
        ],
    ),
    (
        "mw",
        [
            ([0.05, 0.02, 0.01], [-3.935270282061817, -1.5741081128247265, -1.879581902360351], -3.342192573358127),
            ([0.3, -0.2, 0.1], [-1.7090200327895053, 1.139346688526337, -1.8041630355649816], -2.272322258726712),
            ([1.0, 0.0, 0.5], [-0.6548599708353592, -0.0, -0.447990020627668], -1.1967043461093678),
            ([-0.9, 1.1, -0.4], [0.34835092200384127, -0.4257622380046949, 0.22143422940870303], -0.9735842785608273),
            ([3.0, 4.0, 2.0], [-0.06815327007356235, -0.09087102676474981, -0.04710991142147974], 0.021747471841814026),
            ([0.0, -12.0, 9.0], [-0.0, 0.02445041079166278, -0.01841824787828394], 0.5995706328667559),
        ],
    ),
];

/// The fields of [`GALPY`], in its order; the mass of the power law is that of galpy's with amplitude 1.
fn fields() -> [Vec<ExternalField>; 9] {
    let galactic: Units = "8kpc,220km/s".parse().expect("units");
    [
        vec![ExternalField::point(1.3)],
        vec![ExternalField::plummer(1.3, 0.7)],
        vec![ExternalField::hernquist(1.3, 0.7)],
        vec![ExternalField::nfw(1.3, 0.7)],
        vec![ExternalField::miyamoto_nagai(1.3, 0.7, 0.2)],
        vec![ExternalField::isochrone(1.3, 0.7)],
        vec![ExternalField::logarithmic(1.1, 0.3, 0.8)],
        vec![ExternalField::power_law(1.688045410404651, 0.24, 1.8)],
        mwpotential2014(&galactic, 1.0).to_vec(),
    ]
}

fn external(fields: &[ExternalField]) -> External {
    External::new(&fields.iter().cloned().collect(), 1.0)
}

fn norm(v: [f64; 3]) -> f64 {
    v[0].hypot(v[1]).hypot(v[2])
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|k| a[k] - b[k])
}

#[test]
fn they_are_those_of_galpy() {
    for (fields, (name, rows)) in fields().iter().zip(GALPY) {
        let external = external(fields);
        for (x, expected, potential) in rows {
            let off = norm(minus(external.acceleration(x), expected)) / norm(expected);
            assert!(off <= 1e-12, "{name} at {x:?} is off by {off:e}");
            // From the potential at the last point, where that of the power law has another zero.
            let (last, of_last) = (rows[5].0, rows[5].2);
            let found = external.potential().at(x) - external.potential().at(last);
            let off = (found - (potential - of_last)).abs() / potential.abs().max(1.0);
            assert!(
                off <= 1e-12,
                "potential of {name} at {x:?} is off by {off:e}"
            );
        }
    }
}

/// Fields with their centres here and there, one of them on a path.
fn moving_fields() -> Vec<ExternalField> {
    let path = Path::through(&[
        (-1.0, [0.0, 0.1, 0.0]),
        (0.0, [0.2, 0.0, 0.3]),
        (1.5, [0.5, -0.4, 0.2]),
    ]);
    let mut all: Vec<ExternalField> = fields().concat();
    all.push(ExternalField::nfw(0.8, 0.5).at([1.0, -2.0, 0.5]));
    all.push(ExternalField::hernquist(0.8, 0.5).along(path.expect("a path")));
    all
}

/// Acceleration, jerk and snap are derivatives of the potential and of each other: central differences of
/// fourth order, over positions and along the motion.
#[test]
fn derivatives_are_those_of_the_potential() {
    let velocity = [0.3, -0.5, 0.2];
    let change = [-0.2, 0.1, 0.4];
    let (h, time) = (1e-3, 0.25);
    let difference =
        |f: &dyn Fn(f64) -> f64| (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h);
    for field in moving_fields() {
        let mut external = external(std::slice::from_ref(&field));
        let at = |external: &mut External, t: f64, x: [f64; 3], v: [f64; 3]| {
            external.set_time(time + t);
            external.add_up_to(2, [x, v, change], [[0.0; 3]; 3])
        };
        for x in [[0.8, -0.3, 0.6], [3.0, 1.0, -2.0], [0.35, 0.2, -0.25]] {
            let [a, jerk, snap] = at(&mut external, 0.0, x, velocity);
            for axis in 0..3 {
                let moved = |by: f64| {
                    let mut x = x;
                    x[axis] += by;
                    external.potential().at(x)
                };
                let off = (a[axis] + difference(&moved)).abs() / norm(a);
                assert!(off <= 1e-9, "{field} at {x:?}: {off:e}");
                let along = |order: usize| {
                    let external = external.clone();
                    move |t: f64| {
                        let x = [0, 1, 2].map(|k| x[k] + t * (velocity[k] + 0.5 * t * change[k]));
                        let v = [0, 1, 2].map(|k| velocity[k] + t * change[k]);
                        at(&mut external.clone(), t, x, v)[order][axis]
                    }
                };
                for (order, expected) in [(0, jerk), (1, snap)] {
                    let found = difference(&along(order));
                    let off = (found - expected[axis]).abs() / norm(expected);
                    assert!(
                        off <= 1e-8,
                        "derivative {order} of {field} at {x:?}: {off:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn centres_have_no_direction() {
    for fields in fields() {
        assert_eq!(external(&fields).acceleration([0.0; 3]), [0.0; 3]);
    }
    let core = external(&[ExternalField::logarithmic(1.0, 0.0, 1.0)]);
    assert_eq!(core.acceleration([0.0; 3]), [0.0; 3]);
    // Masses of halos near their centre and far from it: ½ x² and ln x.
    for x in [1e-9, 1e-4, 0.09, 0.11, 1e6] {
        let found = gpu_kernels::fields::nfw_mass(x);
        let expected = match x {
            1e-9 => 0.5 * x * x * (1.0 - 4.0 / 3.0 * x),
            1e-4 => x * x * (0.5 + x * (-2.0 / 3.0 + x * (0.75 - 0.8 * x))),
            _ => x.ln_1p() - x / (1.0 + x),
        };
        assert!(
            (found / expected - 1.0).abs() <= 2e-14,
            "{x}: {found} {expected}"
        );
    }
}

fn one(position: [f64; 3], velocity: [f64; 3], mass: f64) -> Bodies {
    let mut bodies = Bodies::with_capacity(1);
    bodies.push(Body {
        position,
        velocity,
        mass,
        id: 0,
        kind: BodyKind::Star,
    });
    bodies
}

fn simulation(
    bodies: &Bodies,
    fields: &[ExternalField],
    integrator: Integrator,
    pace: impl Into<Pace>,
) -> Simulation {
    let backend = Box::new(Cpu::<f64>::new(bodies, GRAVITY).in_fields(external(fields)));
    Simulation::new(backend, bodies.clone(), GRAVITY, integrator, pace, 0.0).expect("a run")
}

#[test]
fn circular_orbits_close() {
    for fields in fields() {
        let name = &fields[0];
        if name.name() == "miyamoto-nagai" {
            continue; // in its plane, as the sum of three does below
        }
        let a = external(&fields).acceleration([0.9, 0.0, 0.0]);
        let speed = (-a[0] * 0.9).sqrt();
        let period = TAU * 0.9 / speed;
        for (integrator, bound) in [
            (Integrator::Yoshida6, 1e-8),
            (Integrator::Hermite4, 1e-6),
            (Integrator::Hermite6, 1e-8),
        ] {
            let bodies = one([0.9, 0.0, 0.0], [0.0, speed, 0.0], 1.0);
            let mut orbit = simulation(&bodies, &fields, integrator, period / 500.0);
            orbit.run_until(period).expect("a run");
            let end = orbit.bodies().expect("bodies").body(0).position;
            let off = norm(minus(end, [0.9, 0.0, 0.0]));
            assert!(off <= bound, "{} in {name}: {off:e}", integrator.name());
        }
    }
}

/// An orbit of 1 Gyr in MWPotential2014, beside galpy's (dop853 with tolerances of 1e-13 and 1e-14, which
/// differ by 3e-10).
#[test]
fn an_orbit_in_the_milky_way_is_that_of_galpy() {
    let galactic: Units = "8kpc,220km/s".parse().expect("units");
    let fields = mwpotential2014(&galactic, 1.0);
    let bodies = one([1.0, 0.0, 0.05], [0.1, 1.1, 0.1], 1e-12);
    let expected = [0.44870811665, -0.97793869492, -0.06990607731];
    for (integrator, dt, bound) in [
        (Integrator::Yoshida6, 0.01, 1e-8),
        (Integrator::Hermite6, 0.002, 1e-8),
        (Integrator::Leapfrog, 0.002, 1e-3),
    ] {
        let mut orbit = simulation(&bodies, &fields, integrator, dt);
        let before = orbit.energy().expect("an energy");
        orbit.run_until(28.0).expect("a run");
        let off = norm(minus(
            orbit.bodies().expect("bodies").body(0).position,
            expected,
        ));
        let drift = orbit.energy().expect("an energy").drift_since(before);
        let name = integrator.name();
        println!("{name}: off by {off:e}, energy by {drift:e}");
        assert!(off <= bound, "{name}: off by {off:e}");
        assert!(drift <= 1e-5, "{name}: energy drifts by {drift:e}");
    }
}

/// Epicycles of Hill's equations: with κ = Ω a body at rest at x₀ with v_y = −2Ω x₀ closes an ellipse of
/// axes 1 : 2 and swings vertically as often; the energy in the turning frame is conserved. The predicted
/// velocity makes hermite4 a scheme of third order: with half of the steps it is off by eight times as much.
#[test]
fn tides_are_hills() {
    let omega = 0.7;
    let fields = [ExternalField::tide(omega, omega, omega)];
    let start = [0.1, 0.0, 0.05];
    let bodies = one(start, [0.0, -2.0 * omega * 0.1, 0.0], 1.0);
    for (integrator, bound, energy_bound) in [
        (Integrator::Hermite4, 3e-6, 4e-5),
        (Integrator::Hermite6, 1e-9, 1e-8),
    ] {
        let dt = TAU / omega / 400.0;
        let mut orbit = simulation(&bodies, &fields, integrator, dt);
        let before = orbit.energy().expect("an energy");
        orbit.run_until(50.0 * dt * 2.0).expect("a run");
        let quarter = orbit.bodies().expect("bodies").body(0).position;
        assert!(
            norm(minus(quarter, [0.0, -0.2, 0.0])) <= bound,
            "{quarter:?}"
        );
        orbit.run_until(TAU / omega).expect("a run");
        let off = norm(minus(
            orbit.bodies().expect("bodies").body(0).position,
            start,
        ));
        assert!(off <= bound, "{}: {off:e}", integrator.name());
        let drift = orbit.energy().expect("an energy").drift_since(before);
        assert!(drift <= energy_bound, "{}: {drift:e}", integrator.name());
    }
}

/// A cluster in a galaxy: what is conserved is the energy with the field's, by every integrator, and with
/// block time steps.
#[test]
fn energy_with_the_field_is_conserved() {
    let bodies = crate::initial_conditions::plummer(32, 1).expect("bodies");
    let physics = Physics {
        softening: 0.1,
        ..GRAVITY
    };
    let fields = Fields::from_iter([
        ExternalField::nfw(20.0, 5.0).at([3.0, 0.0, 0.0]),
        ExternalField::miyamoto_nagai(5.0, 1.0, 0.5).at([3.0, 0.0, 0.0]),
    ]);
    let run = |integrator: Integrator, pace: Pace| {
        let backend = Cpu::<f64>::new(&bodies, physics).in_fields(External::new(&fields, 1.0));
        let run = Simulation::new(
            Box::new(backend),
            bodies.clone(),
            physics,
            integrator,
            pace,
            0.0,
        );
        let mut run = run.expect("a run");
        let before = run.conserved().expect("energies");
        run.run_until(2.0).expect("a run");
        let after = run.conserved().expect("energies");
        assert!((after.energy.external - before.energy.external).abs() > 1e-3);
        after.drift_since(&before).energy
    };
    for (integrator, bound) in [
        (Integrator::Leapfrog, 1e-4),
        (Integrator::Yoshida4, 1e-7),
        (Integrator::Hermite4, 1e-7),
        (Integrator::Hermite6, 1e-9),
    ] {
        let drift = run(integrator, Pace::Fixed(1.0 / 256.0));
        assert!(drift <= bound, "{}: {drift:e}", integrator.name());
    }
    for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
        let drift = run(
            integrator,
            Pace::Adaptive {
                eta: 0.01,
                longest: 1.0 / 16.0,
                end: f64::INFINITY,
                steps: TimeSteps::Blocks,
            },
        );
        assert!(drift <= 1e-6, "{} in blocks: {drift:e}", integrator.name());
    }
}

/// The emulator runs the kernels' sources: forces of every layout, and block time steps of both orders.
#[test]
fn devices_agree_with_the_cpu() {
    let bodies = crate::initial_conditions::plummer(40, 2).expect("bodies");
    let physics = Physics {
        softening: 0.1,
        ..GRAVITY
    };
    let fields: Fields = moving_fields()
        .into_iter()
        .map(|field| match field.path() {
            Some(_) => field,
            None => field.at([0.5, 8.0, -1.0]),
        })
        .collect();
    let expected = {
        let mut cpu = Cpu::<f64>::new(&bodies, physics).in_fields(External::new(&fields, 1.0));
        cpu.set_time(0.4);
        cpu.accelerate().expect("forces");
        cpu.accelerations().expect("forces")
    };
    let scale = expected.iter().map(|&a| norm(a)).fold(0.0, f64::max);
    for (name, bound) in [
        ("tiled", 1e-5),
        ("naive-aos", 1e-5),
        ("naive-soa", 1e-5),
        ("symmetric", 1e-5),
        ("tiled-f64", 1e-14),
        ("double-single", 1e-11),
        ("hermite-f64", 1e-14),
        ("hermite", 1e-5),
    ] {
        let variant = variants::find(name).expect("listed");
        let machine = Machine::emulator(3).fields(fields.clone());
        let mut device = machine.backend(variant, &bodies, physics).expect("it fits");
        device.set_time(0.4);
        device.accelerate().expect("forces");
        for (found, expected) in device
            .accelerations()
            .expect("forces")
            .iter()
            .zip(&expected)
        {
            let off = norm(minus(*found, *expected)) / scale;
            assert!(off <= bound, "{name}: {off:e}");
        }
        let energy = device.energy().expect("an energy").external;
        let mut cpu = Cpu::<f64>::new(&bodies, physics).in_fields(External::new(&fields, 1.0));
        cpu.set_time(0.4);
        let expected = cpu.energy().expect("an energy").external;
        assert!(
            (energy / expected - 1.0).abs() <= 1e-6,
            "{name}: {energy} {expected}"
        );
    }
    for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
        let end = |backend: Box<dyn Backend>| {
            let pace = Pace::Adaptive {
                eta: 0.05,
                longest: 0.125,
                end: f64::INFINITY,
                steps: TimeSteps::Blocks,
            };
            let run = Simulation::new(backend, bodies.clone(), physics, integrator, pace, 0.0);
            let mut run = run.expect("a run");
            run.run_until(0.5).expect("a run");
            run.bodies().expect("bodies").clone()
        };
        let variant = variants::find("hermite-f64").expect("listed");
        let machine = Machine::emulator(3).fields(fields.clone()).block_steps(
            integrator,
            TimeSteps::Blocks,
            Some(0.02),
            Some(ForceAccuracy::Double),
        );
        let machine_end = end(machine.backend(variant, &bodies, physics).expect("it fits"));
        let cpu = Cpu::<f64>::new(&bodies, physics).in_fields(External::new(&fields, 1.0));
        let cpu_end = end(Box::new(cpu));
        for (a, b) in machine_end.iter().zip(cpu_end.iter()) {
            let off = norm(minus(a.position, b.position));
            assert!(off <= 1e-9, "{}: {off:e}", integrator.name());
        }
    }
}

/// Time-dependent fields: how many steps are taken at once does not show, nor does stopping in between.
#[test]
fn moving_fields_are_resumed_bit_for_bit() {
    let bodies = crate::initial_conditions::plummer(8, 1).expect("bodies");
    let physics = Physics {
        softening: 0.1,
        ..GRAVITY
    };
    let path = Path::through(&[(0.0, [3.0, 0.0, 0.0]), (1.0, [0.0, 3.0, 0.0])]).expect("a path");
    let fields = Fields::from_iter([ExternalField::plummer(5.0, 1.0).along(path)]);
    for name in ["cpu-f64", "tiled"] {
        let variant = variants::find(name).expect("listed");
        let place = match name {
            "cpu-f64" => Place::CPU,
            _ => Place::EMULATOR,
        };
        let machine = Machine::new(place).fields(fields.clone());
        let pace = Pace::Fixed(1.0 / 96.0);
        let begun = || {
            let backend = machine.backend(variant, &bodies, physics).expect("it fits");
            let run = Simulation::new(
                backend,
                bodies.clone(),
                physics,
                Integrator::Leapfrog,
                pace,
                0.0,
            );
            run.expect("a run")
        };
        let mut whole = begun();
        whole.run_until(0.5).expect("a run");
        let mut first = begun();
        (0..7).for_each(|_| first.step().expect("a step"));
        let (clock, state) = first.save().expect("a state");
        let bodies = first.bodies().expect("bodies").clone();
        let backend = machine.backend_in_frame(variant, &bodies, physics, state.frame);
        let saved = (clock, &state);
        let rest = Simulation::resume(
            backend.expect("it fits"),
            bodies,
            physics,
            Integrator::Leapfrog,
            pace,
            saved,
        );
        let mut rest = rest.expect("a run");
        rest.run_until(0.5).expect("a run");
        assert_eq!(
            whole.bodies().expect("bodies"),
            rest.bodies().expect("bodies"),
            "{name}"
        );
        let beyond = whole.run_until(1.5);
        assert!(beyond.is_err_and(|error| error.to_string().contains("from time 0 to 1")));
    }
}

/// The perihelion of Mercury: 42.98″ a century (Park et al. 2017, AJ 153, 121, have 42.9799), by how much
/// further it is after some orbits than without the term. Energy with its term is conserved. On a device, too.
#[test]
fn mercurys_perihelion_advances() {
    let units: Units = "au".parse().expect("units");
    let (a, e) = (0.387_098_93_f64, 0.205_630_69);
    let mut bodies = one([0.0; 3], [0.0; 3], 1.0);
    let speed = ((1.0 - e) / (1.0 + e) / a).sqrt();
    bodies.push(Body {
        mass: 1.66e-7,
        ..one([a * (1.0 + e), 0.0, 0.0], [0.0, speed, 0.0], 0.0).body(0)
    });
    let period = TAU * (a * a * a / (1.0 + 1.66e-7)).sqrt();
    let steps = 1000;
    // Direction of the perihelion: that of the eccentricity vector, halfway between two.
    let perihelion = |fields: &Fields, (place, kernel), integrator: Integrator, orbits: u32| {
        let machine = Machine::new(place).fields(fields.clone());
        let kernel = variants::find(kernel).expect("listed");
        let backend = machine.backend(kernel, &bodies, GRAVITY).expect("fields");
        let dt = period / f64::from(steps);
        let run = Simulation::new(backend, bodies.clone(), GRAVITY, integrator, dt, 0.0);
        let mut run = run.expect("a run");
        let before = run.energy().expect("an energy");
        run.run_until(f64::from(orbits) * period).expect("a run");
        let drift = run.energy().expect("an energy").drift_since(before);
        let bodies = run.bodies().expect("bodies");
        let (sun, mercury) = (bodies.body(0), bodies.body(1));
        let [x, v] = [
            minus(mercury.position, sun.position),
            minus(mercury.velocity, sun.velocity),
        ];
        let moment = x[0] * v[1] - x[1] * v[0];
        let r = norm(x);
        let e = [v[1] * moment - x[0] / r, -v[0] * moment - x[1] / r];
        ((-e[1]).atan2(-e[0]), drift)
    };
    let relativity = parse("1pn:body=0", Some(&units), 1.0).expect("a field");
    let cpu = || (Place::CPU, "cpu-f64");
    for (place, integrator, orbits) in [
        (cpu(), Integrator::Hermite6, 20),
        (cpu(), Integrator::Hermite4, 20),
        ((Place::EMULATOR, "hermite-f64"), Integrator::Hermite4, 2),
    ] {
        let (with, drift) = perihelion(&relativity, place.clone(), integrator, orbits);
        let (without, _) = perihelion(&Fields::NONE, place, integrator, orbits);
        let century = 100.0 * crate::units::YEAR / units.time;
        let per_century = (with - without) / (f64::from(orbits) * period) * century;
        let arcseconds = per_century.to_degrees() * 3600.0;
        println!("{}: {arcseconds}, energy {drift:e}", integrator.name());
        assert!(
            (arcseconds - 42.98).abs() <= 0.05,
            "{arcseconds}″ a century"
        );
        assert!(
            drift <= 1e-9,
            "{}: energy drifts by {drift:e}",
            integrator.name()
        );
    }
    let refused = |text: &str| {
        let fields = parse(text, Some(&units), 1.0).expect("a field");
        let external = External::of_bodies(&fields, &bodies, &GRAVITY);
        external.expect_err("refused").to_string()
    };
    assert!(refused("1pn:body=1").contains("body 0 is heavier"));
    assert!(refused("1pn:body=2").contains("there are 2 bodies"));
    let mut comparable = bodies.clone();
    comparable.mass[1] = 0.5 * comparable.mass[0];
    let fields = parse("1pn", Some(&units), 1.0).expect("a field");
    let fault = External::of_bodies(&fields, &comparable, &GRAVITY).expect_err("two are heavy");
    assert!(
        fault.to_string().contains("body 1 has 0.50 times"),
        "{fault}"
    );
    assert!(parse("1pn", None, 1.0).is_err_and(|error| error.to_string().contains("`c`")));
}

/// The term on devices is that of the CPU: in fixed steps, on two devices too, in steps that vary, and in block
/// time steps of both orders, in which the dominant body takes longer steps than others; with another field.
#[test]
fn relativity_on_devices_is_that_of_the_cpu() {
    let mut bodies = one([0.1, 0.2, 0.0], [0.01, 0.0, 0.02], 1.0);
    let mut add = |a: f64, angle: f64, mass: f64| {
        let (sin, cos) = angle.sin_cos();
        let v = 0.9 / a.sqrt();
        let x = [0.1 + a * cos, 0.2 + a * sin, 0.1 * a * sin];
        bodies.push(Body {
            mass,
            ..one(x, [-v * sin, v * cos, 0.1 * v], 0.0).body(0)
        });
    };
    for (k, mass) in [1e-3, 0.0, 2e-4, 1e-3, 0.0, 3e-3].into_iter().enumerate() {
        add(0.4 + 0.3 * k as f64, 1.3 * k as f64, mass);
    }
    add(8.0, 0.3, 1e-2);
    let fields = |c: Option<f64>| {
        let halo = parse("plummer:mass=2,scale=5,x=1", None, 1.0).expect("a field");
        let terms = c.map(|c| ExternalField::first_post_newtonian(0, c));
        Fields::from_iter(halo.iter().cloned().chain(terms))
    };
    let run = |device, c, (integrator, eta, blocks): (Integrator, Option<f64>, bool)| {
        let builder = Simulation::builder(bodies.clone())
            .gravity(1.0, 0.0)
            .integrator(integrator)
            .device(device)
            .dt(1.0 / 64.0);
        let builder = fields(c)
            .iter()
            .fold(builder, |builder, field| builder.field(field.clone()));
        let builder = eta.into_iter().fold(builder, SimulationBuilder::eta);
        let builder = match blocks {
            true => builder.dt(0.5).block_steps(),
            false => builder,
        };
        let mut run = builder.build().expect("it is computed there");
        let before = run.energy().expect("an energy");
        run.run_until(0.5).expect("a run");
        let after = run.energy().expect("an energy");
        let drift = (after.total() / before.total() - 1.0).abs();
        let counts = run.block_counts();
        (run.bodies().expect("bodies").clone(), drift, counts)
    };
    let distance = |a: &Bodies, b: &Bodies| {
        let apart = a.iter().zip(b.iter()).map(|(a, b)| {
            norm(minus(a.position, b.position)).max(norm(minus(a.velocity, b.velocity)))
        });
        apart.fold(0.0, f64::max)
    };
    let (one, two) = (DeviceChoice::Emulator, DeviceChoice::Emulators(2));
    for (way, devices) in [
        ((Integrator::Hermite4, None, false), &[one, two][..]),
        ((Integrator::Hermite4, Some(0.001), false), &[one]),
        ((Integrator::Hermite4, Some(0.01), true), &[one]),
        ((Integrator::Hermite6, Some(0.1), true), &[one]),
    ] {
        let (expected, drift, _) = run(DeviceChoice::Cpu, Some(20.0), way);
        assert!(drift <= 1e-5, "{way:?}: {drift:e}");
        let (without, ..) = run(DeviceChoice::Cpu, None, way);
        assert!(distance(&without, &expected) >= 1e-4, "the term is felt");
        for &device in devices {
            let (found, drift, counts) = run(device, Some(20.0), way);
            let apart = distance(&found, &expected);
            println!("{device:?} {way:?}: {apart:e}, {drift:e}, {counts:?}");
            assert!(apart <= 1e-13, "{device:?}, {way:?}: {apart:e}");
            assert!(drift <= 1e-5, "{device:?}, {way:?}: {drift:e}");
        }
    }
    // What cannot be is refused, with a way out.
    let refused = |kernel: &str, device, blocks: bool| {
        let builder = Simulation::builder(bodies.clone())
            .gravity(1.0, 0.0)
            .field(ExternalField::first_post_newtonian(0, 20.0))
            .integrator(Integrator::Hermite4)
            .kernel(variants::find(kernel).expect("listed"))
            .device(device)
            .dt(0.1);
        let builder = match blocks {
            true => builder.eta(0.01).block_steps(),
            false => builder,
        };
        let Err(why) = builder.build() else {
            panic!("{kernel} computes it")
        };
        why.to_string()
    };
    let why = refused("hermite", one, false);
    assert!(why.contains("below what single precision rounds"), "{why}");
    let why = refused("hermite-f64", two, true);
    assert!(why.contains("one device of one process"), "{why}");
}

/// Derivatives of the term along the motion that it is a part of, beside differences.
#[test]
fn derivatives_of_the_relativistic_term() {
    let fields = Fields::from_iter([ExternalField::first_post_newtonian(0, 3.0)]);
    let bodies = one([0.0; 3], [0.0; 3], 2.0);
    let external = External::of_bodies(&fields, &bodies, &GRAVITY).expect("fields");
    let term = external.relativity().expect("the term");
    let (x, v) = ([0.8, -0.5, 0.3], [0.2, 0.6, -0.4]);
    let forces = [[-0.5, 0.3, 0.1], [0.2, -0.1, 0.4], [0.3, 0.2, 0.1]];
    let full = term.add(2, [x, v], forces, [[0.0; 3]; 3]);
    let h = 1e-3;
    // Along the motion with these accelerations and jerks, of the term alone.
    let at = |t: f64| {
        let [a, j, s] = full;
        let x = [0, 1, 2]
            .map(|k| x[k] + t * (v[k] + t / 2.0 * (a[k] + t / 3.0 * (j[k] + t / 4.0 * s[k]))));
        let v = [0, 1, 2].map(|k| v[k] + t * (a[k] + t / 2.0 * (j[k] + t / 3.0 * s[k])));
        term.add(0, [x, v], [[0.0; 3]; 3], [[0.0; 3]; 3])[0]
    };
    for axis in 0..3 {
        let values = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|step| at(step * h)[axis]);
        let [a, b, c, d, e] = values;
        let first = (8.0 * (d - b) - (e - a)) / (12.0 * h);
        let second = (16.0 * (b + d) - 30.0 * c - a - e) / (12.0 * h * h);
        let expected = [
            full[1][axis] - forces[1][axis],
            full[2][axis] - forces[2][axis],
        ];
        assert!(
            (first - expected[0]).abs() <= 1e-9,
            "{first} {}",
            expected[0]
        );
        assert!(
            (second - expected[1]).abs() <= 1e-6,
            "{second} {}",
            expected[1]
        );
    }
}

#[derive(Debug)]
struct Spring;

impl HostField for Spring {
    fn acceleration(&self, _time: f64, x: [f64; 3]) -> [f64; 3] {
        x.map(|x| -x)
    }

    fn jerk(&self, _time: f64, _x: [f64; 3], v: [f64; 3]) -> Option<[f64; 3]> {
        Some(v.map(|v| -v))
    }

    fn potential(&self, _time: f64, x: [f64; 3]) -> Option<f64> {
        Some(0.5 * x.iter().map(|x| x * x).sum::<f64>())
    }

    fn changes_with_time(&self) -> bool {
        false
    }
}

#[test]
fn a_field_of_ones_own_swings() {
    let bodies = one([1.0, 0.0, 0.0], [0.0; 3], 1.0);
    for integrator in [Integrator::Yoshida6, Integrator::Hermite4] {
        let run = Simulation::builder(bodies.clone())
            .field(ExternalField::own(Spring))
            .integrator(integrator)
            .gravity(1.0, 0.0)
            .dt(TAU / 500.0)
            .device(crate::selection::DeviceChoice::Cpu)
            .build();
        let mut run = run.expect("a run");
        let before = run.energy().expect("an energy");
        run.run_until(TAU).expect("a run");
        let off = norm(minus(
            run.bodies().expect("bodies").body(0).position,
            [1.0, 0.0, 0.0],
        ));
        assert!(off <= 1e-6, "{off:e}");
        assert!(run.energy().expect("an energy").drift_since(before) <= 1e-6);
    }
    let fields = Fields::from_iter([ExternalField::own(Spring)]);
    let refused = refused(&fields, Integrator::Hermite6).expect("no snap");
    assert!(
        refused.contains("lacks a derivative") && refused.contains("hermite4"),
        "{refused}"
    );
    let variant = variants::find("tiled").expect("listed");
    let machine = Machine::emulator(0).fields(fields);
    let on_device = machine.backend(variant, &bodies, GRAVITY).err();
    assert!(matches!(on_device, Some(ForceError::Refused(_))));
}

/// The refusal of these fields with steps of an integrator, if there is one.
fn refused(fields: &Fields, integrator: Integrator) -> Option<String> {
    let needs = Needs::new(ForceLaw::Gravity).fields(fields);
    let needs = needs.steps(integrator, TimeSteps::Shared, None, None);
    let refused = rules::check(&needs, &Offer::ANY).err();
    refused.map(|refusals| refusals.to_string())
}

#[test]
fn what_makes_no_sense_is_refused() {
    let units: Units = "pc".parse().expect("units");
    for (text, parts) in [
        ("nwf:mass=1", &["`nwf`", "did you mean `nfw`"][..]),
        ("nfw:mas=1,scale=2", &["`mas`", "did you mean `mass`"]),
        ("nfw:mass=1", &["needs `scale`"]),
        ("nfw:mass=1,scale=-16", &["`scale`", "> 0", "-16"]),
        ("nfw:mass=1Msun,scale=-16kpc", &["`scale`", "> 0", "-16000"]),
        ("nfw:mass=1kpc,scale=2", &["`mass`", "1e12Msun", "`1kpc`"]),
        ("nfw:mass=1,scale=2,scale=3", &["`scale`", "once"]),
        ("nfw:mass=nan,scale=2", &["`mass`", "finite", "NaN"]),
        (
            "power-law:mass=1,cutoff=1,exponent=2",
            &["`exponent`", "< 2", "got 2"],
        ),
        ("tide:omega=1,x=3", &["tide", "no centre"]),
        (
            "plummer:mass=1,scale=1,path=/nowhere/path.csv",
            &["/nowhere/path.csv"],
        ),
        (
            "plummer:mass=1,scale=1,path=a,x=3",
            &["`path`", "without x"],
        ),
    ] {
        let error = parse(text, Some(&units), 1.0).expect_err(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
    let error = parse("nfw:mass=1Msun,scale=1", None, 1.0).expect_err("no units");
    assert!(error.to_string().contains("`units`"), "{error}");
    let error = parse("mwpotential2014", None, 1.0).expect_err("no units");
    assert!(error.to_string().contains("`units`"), "{error}");
    let centred = |x: &str| {
        parse(
            &format!("point:mass=1Msun,{x}"),
            Some(&units),
            units.gravity(),
        )
    };
    let zero = centred("x=0kpc,y=0.0pc,z=2pc").expect("zero with a unit");
    let plain = centred("x=0,y=0,z=2").expect("plain numbers");
    assert_eq!(format!("{zero:?}"), format!("{plain:?}"));
    assert!(centred("x=0km/s").is_err());
    let tide = parse("tide:omega=30km/s/kpc", Some(&units), units.gravity()).expect("a tide");
    assert_eq!(refused(&tide, Integrator::Hermite4), None);
    let refused = refused(&tide, Integrator::Leapfrog).expect("kicks");
    assert!(
        refused.contains("hermite4") && refused.contains("leapfrog"),
        "{refused}"
    );
    // Shown in the units of the run: 30 km/s/kpc is 0.03 km/s/pc.
    let shown = tide.iter().next().map(ToString::to_string);
    assert_eq!(
        shown.as_deref(),
        Some("tide: omega 0.03, kappa 0.03, nu 0.03")
    );
}

#[test]
fn paths_are_read_and_refused() {
    let table = "# a satellite\nt,x,y,z\n0, 1 2 3\n1 2 3 4\n3,4,5,6\n";
    let path = Path::parse(table).expect("a path");
    assert_eq!((path.knots(), path.span()), (3, [0.0, 3.0]));
    // A straight line remains one.
    let external = External::new(
        &Fields::from_iter([ExternalField::point(1.0).along(path)]),
        1.0,
    );
    let mut external = external;
    external.set_time(2.0);
    let a = external.acceleration([3.0, 4.0, 7.0]);
    assert!(norm(minus(a, [0.0, 0.0, -0.25])) <= 1e-15, "{a:?}");
    for (text, part) in [
        ("0 1 2 3\n", "two rows"),
        ("0 1 2 3\n0 1 2 3\n", "must increase"),
        ("0 1 2 3\n1 2 3\n", "line 2"),
        ("0 1 2 3\n1 2 3 x\n", "line 2"),
        ("0 1 2 3\n1 2 3 inf\n", "line 2"),
        (
            "# t/Myr x/kpc y/kpc z/kpc\n0 1 2 3\n1 2 3 4\n",
            "tells units",
        ),
        ("# kpc\n0 1 2 3\n1 2 3 4\n", "tells units"),
        (
            "# time x y z\n# Myr kpc kpc kpc\n0 1 2 3\n1 2 3 4\n",
            "line 2 of the path tells units",
        ),
    ] {
        let error = Path::parse(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_body_in_a_singular_centre_is_refused() {
    let bodies = || {
        let mut bodies = one([1.0, 2.0, 3.0], [0.0; 3], 1.0);
        bodies.push(one([0.0; 3], [0.0; 3], 1.0).body(0));
        bodies
    };
    let built = |text: &str, orbit: Option<&str>| {
        let mut fields = parse(text, None, 1.0).expect("a field");
        if let Some(orbit) = orbit {
            fields = fields.on_orbit(parse_orbit(orbit, None).expect("an orbit"));
        }
        let fields = &fields;
        let run = crate::run::RunSpec {
            fields: fields.clone(),
            softening: Some(0.1),
            dt: Some(0.1),
            device: DeviceChoice::Cpu,
            ..crate::run::RunSpec::default()
        };
        let run = run
            .resolve(&bodies(), &crate::run::Surroundings::general())
            .expect("sound");
        run.start(bodies())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for (text, orbit, body) in [
        ("point:mass=1", None, 1),
        ("point:mass=0,x=1,y=2,z=3", None, 0),
        ("hernquist:mass=1,scale=1", None, 1),
        ("nfw:mass=1,scale=1", None, 1),
        ("logarithmic:speed=1", None, 1),
        ("power-law:mass=1,cutoff=1,exponent=1.5", None, 1),
        ("point:mass=1", Some("x=-1,y=-2,z=-3,vx=1"), 0),
    ] {
        let refused = built(text, orbit).expect_err("refused");
        let name = text.split(':').next().expect("a name");
        let said = format!("body {body} is exactly in the centre of the field {name}");
        assert!(refused.contains(&said), "{text}: {refused}");
    }
    for text in [
        "plummer:mass=1,scale=1",
        "logarithmic:speed=1,core=1",
        "point:mass=1,x=1e-300",
    ] {
        built(text, None).expect("a centre without a body, or one that is smooth");
    }
}

/// As messages between ranks have them: a field by its name, and paths through knots.
#[test]
fn fields_that_make_no_sense_are_not_read() {
    let written = |name: &str, values: &[f64]| {
        let at_origin = (0_u32, [0.0; 3]);
        let field = ((0_u32, (name, values)), at_origin);
        postcard::to_extend(&field, vec![]).expect("plain numbers")
    };
    let read = |bytes: &[u8]| postcard::from_bytes::<ExternalField>(bytes);
    let nfw = read(&written("nfw", &[3.0, 2.0])).expect("mass and scale");
    assert_eq!(
        format!("{nfw:?}"),
        format!("{:?}", ExternalField::nfw(3.0, 2.0))
    );
    assert!(read(&written("nfw", &[3.0])).is_err());
    assert!(read(&written("nowhere", &[3.0, 2.0])).is_err());
    let path = |times: &[f64]| {
        let knot = |&time: &f64| (time, [1.0, 2.0, 3.0], [4.0, 5.0, time]);
        let knots: Vec<_> = times.iter().map(knot).collect();
        let path = postcard::to_extend(&knots, vec![]).expect("plain numbers");
        postcard::from_bytes::<Path>(&path).map(|path| (path, knots))
    };
    let (read, knots) = path(&[0.0, 0.5]).expect("in order");
    assert_eq!(read, Path::with_velocities(&knots).expect("in order"));
    assert!(path(&[0.5, 0.0]).is_err() && path(&[0.5]).is_err());
}
