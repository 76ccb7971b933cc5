//! JPL's planetary ephemeris DE423, as much of it as the Solar System is made from and judged by.
//!
//! W. M. Folkner, "Planetary ephemeris DE423 fit to Messenger encounters with Mercury", JPL
//! interoffice memorandum 343R-10-001 (2010); the numbers are those that its distribution for
//! Python (package `de423`, 2010.1) gives with `jplephem` 1.2, digit for digit. Positions are in
//! km and velocities in km/day, equatorial (ICRF) and from the barycentre of the Solar System; of
//! the Moon, from the centre of the Earth. Times are barycentric dynamical time (TDB). The
//! satellites of the outer planets are part of them.
//!
//! DE423 holds from 1800 to 2200. It has what is not simulated here: general relativity, the
//! heaviest asteroids, the figures of Sun, Earth and Moon, and tides.

/// A body at J2000.
pub(super) struct State {
    /// G times the mass, in au³/day² of [`ASTRONOMICAL_UNIT_KM`].
    pub(super) gm: f64,
    /// In km.
    pub(super) position: [f64; 3],
    /// In km/day.
    pub(super) velocity: [f64; 3],
}

/// The astronomical unit of DE423 in km, which its GM are given with (constant `AU`).
pub(super) const ASTRONOMICAL_UNIT_KM: f64 = 149_597_870.699_626_2;

/// Mass of the Earth over the mass of the Moon (constant `EMRAT`).
pub(super) const EARTH_PER_MOON: f64 = 81.300_569_415_998_57;

/// The Sun, Mercury, Venus, the barycentre of Earth and Moon, Mars to Neptune, and Pluto at J2000
/// (constants `GMS`, `GM1`, `GM2`, `GMB`, `GM4` to `GM9`).
pub(super) const AT_J2000: [State; 10] = [
    // Sun
    State {
        gm: 0.000_295_912_208_285_591_1,
        position: [
            -1_067_598.677_155_154_5,
            -395_988.808_224_214_5,
            -138_071.078_300_756_55,
        ],
        velocity: [
            804.606_008_719_281_7,
            -1_011.010_244_123_929_9,
            -453.707_822_145_495_5,
        ],
    },
    // Mercury
    State {
        gm: 4.912_497_173_337_001e-11,
        position: [
            -20_529_325.013_322_398,
            -60_323_955.847_606_05,
            -30_130_845.363_076_8,
        ],
        velocity: [
            3_197_171.902_134_650_4,
            -737_974.943_514_537_6,
            -725_619.372_351_718,
        ],
    },
    // Venus
    State {
        gm: 7.243_452_332_698_441e-10,
        position: [
            -108_524_092.727_542_94,
            -7_318_517.689_265_384,
            3_548_115.781_758_785_2,
        ],
        velocity: [
            120_201.292_057_366_37,
            -2_767_350.524_256_467_4,
            -1_252_548.288_960_578_6,
        ],
    },
    // Earth and Moon
    State {
        gm: 8.997_011_408_268_049e-10,
        position: [
            -27_570_175.799_629_625,
            132_358_187.813_894_24,
            57_417_722.483_401_81,
        ],
        velocity: [
            -2_572_743.877_299_296_7,
            -435_269.998_410_857_75,
            -188_724.071_169_854_1,
        ],
    },
    // Mars
    State {
        gm: 9.549_548_695_622_39e-11,
        position: [
            206_980_541.977_476_5,
            -186_369.436_136_338_34,
            -5_667_233.015_945_26,
        ],
        velocity: [
            101_259.500_767_317_75,
            2_065_539.589_169_463,
            944_690.741_819_461_6,
        ],
    },
    // Jupiter
    State {
        gm: 2.825_345_840_855_05e-7,
        position: [
            597_499_984.492_831_7,
            408_990_365.083_637_54,
            160_756_273.137_089_67,
        ],
        velocity: [
            -682_605.371_430_115_4,
            878_843.203_358_321_2,
            393_333.206_096_871_23,
        ],
    },
    // Saturn
    State {
        gm: 8.459_706_073_308_477e-8,
        position: [
            957_317_523.994_553_1,
            923_319_671.351_465_1,
            340_162_793.039_963_5,
        ],
        velocity: [
            -641_322.095_515_899_7,
            526_821.823_246_238_6,
            245_175.750_761_808_91,
        ],
    },
    // Uranus
    State {
        gm: 1.292_024_825_792_65e-8,
        position: [
            2_157_907_414.940_874,
            -1_871_306_853.684_008_4,
            -850_106_441.811_09,
        ],
        velocity: [
            401_443.426_615_481_73,
            367_299.664_151_934_85,
            155_189.222_965_983_12,
        ],
    },
    // Neptune
    State {
        gm: 1.524_359_109_249_74e-8,
        position: [
            2_513_979_133.277_940_8,
            -3_438_170_598.595_274,
            -1_469_851_417.494_995_8,
        ],
        velocity: [
            386_658.583_932_847_83,
            248_581.749_775_830_54,
            92_119.650_034_541_41,
        ],
    },
    // Pluto
    State {
        gm: 2.178_441_051_990_52e-12,
        position: [
            -1_478_399_560.885_167_4,
            -4_185_975_661.928_375_7,
            -860_878_283.980_723_7,
        ],
        velocity: [
            453_899.320_962_885_5,
            -169_696.540_435_653_27,
            -189_714.346_210_260_12,
        ],
    },
];

/// Position and velocity of the Moon from the Earth at J2000.
pub(super) const MOON_AT_J2000: [[f64; 3]; 2] = [
    [
        -291_608.384_945_149_5,
        -266_716.833_373_143_75,
        -76_102.487_028_163_57,
    ],
    [
        55_601.111_908_762_97,
        -57_549.976_070_804_79,
        -26_034.540_693_515_486,
    ],
];

/// Positions 100 Julian years after J2000 (JD 2488070.0), of the same ten.
pub(super) const AFTER_100_YEARS: [[f64; 3]; 10] = [
    [
        1_257_687.284_195_677_4,
        157_298.377_726_217_94,
        26_862.755_407_894_536,
    ], // Sun
    [
        38_284_848.557_201_87,
        -44_549_324.656_869_74,
        -27_690_846.367_114_358,
    ], // Mercury
    [
        103_619_745.431_469_19,
        34_886_090.991_720_19,
        9_192_652.061_168_285,
    ], // Venus
    [
        -23_584_435.155_308_56,
        133_201_987.606_411_96,
        57_673_392.391_230_64,
    ], // Earth and Moon
    [
        91_541_483.292_218_79,
        189_284_582.487_750_32,
        84_362_542.685_890_87,
    ], // Mars
    [
        -802_557_992.181_255_7,
        -132_394_181.612_966_22,
        -37_240_711.215_079_56,
    ], // Jupiter
    [
        -1_367_913_928.415_834,
        -447_698_025.843_577_74,
        -125_944_393.010_665_55,
    ], // Saturn
    [
        2_823_331_436.493_861_7,
        912_333_402.417_737_6,
        359_689_823.305_000_5,
    ], // Uranus
    [
        -4_346_004_271.235_319,
        1_100_492_843.347_352_5,
        558_645_137.282_962_7,
    ], // Neptune
    [
        5_936_531_343.882_077,
        4_260_161_132.244_279_4,
        -459_116_458.311_937_63,
    ], // Pluto
];
