//! Random expressions: mostly well typed, so that they get far, with enough slips to see errors agree too.

/// A small generator whose output depends on its seed alone.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick(&mut self, options: &[&str]) -> String {
        options[self.below(options.len())].to_owned()
    }
}

/// One expression of any type.
pub(crate) fn expression(random: &mut Random, depth: usize) -> String {
    match random.below(9) {
        0..=2 => integer(random, depth),
        3 => float(random, depth),
        4 | 5 => text(random, depth),
        6 => list(random, depth),
        7 => boolean(random, depth),
        _ => dict(random, depth),
    }
}

/// Now and then something of another type.
fn slip(random: &mut Random, depth: usize, make: fn(&mut Random, usize) -> String) -> String {
    if random.below(25) == 0 { expression(random, depth.saturating_sub(1)) } else { make(random, depth) }
}

fn int(random: &mut Random, depth: usize) -> String {
    slip(random, depth, integer)
}

fn str(random: &mut Random, depth: usize) -> String {
    slip(random, depth, text)
}

fn seq(random: &mut Random, depth: usize) -> String {
    slip(random, depth, list)
}

fn integer(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(&[
            "a", "b", "z", "0", "1", "2", "5", "-1", "10", "big", "yes", "1_000", "0xff", "True", "len(l)",
        ]);
    }
    let d = depth - 1;
    match random.below(26) {
        0..=5 => {
            let op = random.pick(&["+", "-", "*", "//", "%", "&", "|", "^"]);
            format!("({} {op} {})", int(random, d), int(random, d))
        }
        6 => format!("({} ** {})", int(random, d), random.below(6)),
        7 => format!("({} {} {})", int(random, d), random.pick(&["<<", ">>"]), random.below(70)),
        8 => format!("-{}", int(random, d)),
        9 => format!("~{}", int(random, d)),
        10 => format!("len({})", expression(random, d)),
        11 => format!("abs({})", number(random, d)),
        12 => format!("int({})", number(random, d)),
        13 => format!("round({})", float(random, d)),
        14 => format!("{}[{}]", seq(random, d), integer(random, 0)),
        15 => format!("sum({})", seq(random, d)),
        16 => format!("{}({}, {})", random.pick(&["min", "max"]), int(random, d), number(random, d)),
        17 => format!("({} if {} else {})", int(random, d), boolean(random, d), int(random, d)),
        18 => format!(
            "{}.{}({})",
            str(random, d),
            random.pick(&["find", "count", "rfind", "index"]),
            str(random, d)
        ),
        19 => format!("int({}, {})", str(random, d), random.pick(&["10", "16", "0", "2"])),
        20 => format!("ord({}[0])", str(random, d)),
        21 => format!(
            "{}.{}",
            int(random, d),
            random.pick(&["bit_length()", "real", "denominator", "bit_count()", "conjugate()"])
        ),
        22 => format!("{}.{}({})", seq(random, d), random.pick(&["index", "count"]), int(random, d)),
        23 => format!("divmod({}, {})[{}]", number(random, d), number(random, d), random.below(2)),
        24 => format!("{}({})", random.pick(&["min", "max"]), seq(random, d)),
        _ => format!("pow({}, {}, {})", int(random, d), random.below(9), int(random, d)),
    }
}

fn number(random: &mut Random, depth: usize) -> String {
    if random.below(2) == 0 { int(random, depth) } else { float(random, depth) }
}

fn float(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(&[
            "f",
            "g",
            "0.0",
            "1.5",
            "-2.25",
            "1e16",
            "1e-5",
            "0.1",
            "100.0",
            "float('inf')",
            "3.0e3",
            "-0.0",
        ]);
    }
    let d = depth - 1;
    match random.below(10) {
        0..=3 => format!(
            "({} {} {})",
            float(random, d),
            random.pick(&["+", "-", "*", "/", "//", "%"]),
            number(random, d)
        ),
        4 => format!("({} / {})", int(random, d), int(random, d)),
        5 => format!("round({}, {})", float(random, d), random.pick(&["0", "1", "2", "3", "-1", "5"])),
        6 => format!("float({})", number(random, d)),
        7 => format!("({} ** {})", number(random, d), random.pick(&["0.5", "2", "-1", "0", "1.5", "3"])),
        8 => format!(
            "float({})",
            random.pick(&["'1.5'", "' 2 '", "'1e3'", "num", "'-inf'", "'1_0.5'", "'x'", "''"])
        ),
        _ => format!("-{}", float(random, d)),
    }
}

fn boolean(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(&["yes", "True", "False", "n is None", "not l", "a > b"]);
    }
    let d = depth - 1;
    match random.below(12) {
        0..=2 => {
            let op = random.pick(&["<", "<=", ">", ">=", "==", "!="]);
            format!("({} {op} {})", number(random, d), number(random, d))
        }
        3 => format!(
            "({} {} {})",
            str(random, d),
            random.pick(&["<", "==", "in", "not in", ">="]),
            str(random, d)
        ),
        4 => format!("({} {} {})", expression(random, d), random.pick(&["in", "not in"]), seq(random, d)),
        5 => format!("({} < {} <= {})", number(random, d), number(random, d), number(random, d)),
        6 => format!("({} {} {})", boolean(random, d), random.pick(&["and", "or"]), expression(random, d)),
        7 => format!("(not {})", expression(random, d)),
        8 => format!(
            "{}.{}()",
            str(random, d),
            random.pick(&[
                "isdigit",
                "isalpha",
                "isupper",
                "islower",
                "isspace",
                "istitle",
                "isalnum",
                "isidentifier",
                "isascii",
                "isprintable"
            ])
        ),
        9 => format!("{}.{}({})", str(random, d), random.pick(&["startswith", "endswith"]), str(random, d)),
        10 => format!("({} == {})", expression(random, d), expression(random, d)),
        _ => format!("{}({})", random.pick(&["any", "all", "bool", "callable"]), seq(random, d)),
    }
}

fn text(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(&[
            "s", "u", "e", "w", "num", "'a'", "'a,b,,c'", "\"it's\"", "'x y'", "'%s'", "'Ab1'", "'\\n'",
            "'é'", "'{}'",
        ]);
    }
    let d = depth - 1;
    match random.below(30) {
        0 | 1 => format!("({} + {})", str(random, d), str(random, d)),
        2 => format!("({} * {})", str(random, d), random.pick(&["0", "2", "3", "-1", "yes"])),
        3 => format!("{}[{}]", str(random, d), int(random, 0)),
        4 => format!("{}[{}]", str(random, d), slice(random)),
        5 => format!("str({})", expression(random, d)),
        6 => format!("repr({})", expression(random, d)),
        7 | 8 => format!(
            "{}.{}()",
            str(random, d),
            random.pick(&[
                "upper",
                "lower",
                "title",
                "capitalize",
                "swapcase",
                "casefold",
                "strip",
                "lstrip",
                "rstrip",
                "expandtabs"
            ])
        ),
        9 => format!(
            "{}.{}({})",
            str(random, d),
            random.pick(&["strip", "lstrip", "rstrip", "removeprefix", "removesuffix"]),
            str(random, d)
        ),
        10 => format!("{}.replace({}, {})", str(random, d), str(random, d), str(random, d)),
        11 => {
            format!("{}.replace({}, {}, {})", str(random, d), str(random, d), str(random, d), random.below(3))
        }
        12 => format!("{}.join({})", str(random, d), strings(random, d)),
        13 => format!(
            "{}.{}({})",
            str(random, d),
            random.pick(&["ljust", "rjust", "center", "zfill"]),
            random.below(12)
        ),
        14 => format!("{}.center({}, '*')", str(random, d), random.below(12)),
        15 => format!("f'{{{}}}'", plain(random, d)),
        16 => format!("f'<{{{}!{}}}>'", plain(random, d), random.pick(&["r", "s", "a"])),
        17..=19 => format!("format({}, {:?})", number(random, d), number_spec(random)),
        20 => format!(
            "format({}, {:?})",
            str(random, d),
            random.pick(&["", ">8", "<8", "^9", "*^7", ".2", "8.3", "s", "08", "=5", "d"])
        ),
        21 => format!("({:?} % {})", percent(random), number(random, d)),
        22 => format!(
            "({:?} % ({}, {}))",
            random.pick(&["%s-%s", "%r %5s", "%-4s|%s", "%s", "%s %s %s", "%d %s", "%.2s%s"]),
            expression(random, d),
            expression(random, d)
        ),
        23 => format!(
            "{:?}.format({}, {})",
            random.pick(&[
                "{} {}", "{1}{0}", "{0!r:>8}", "{:>5}{}", "{0[0]}", "{{}}{}", "{2}", "{a}", "{0:.3}"
            ]),
            expression(random, d),
            int(random, d)
        ),
        24 => format!("hex({})", int(random, d)),
        25 => format!("{}({})", random.pick(&["bin", "oct", "chr"]), int(random, 0)),
        26 => format!("({} if {} else {})", str(random, d), boolean(random, d), str(random, d)),
        27 => format!(
            "{}[{}]",
            random.pick(&["s", "t", "d"]),
            random.pick(&["0", "1", "'a'", "'zz'", "-1", "9"])
        ),
        28 => format!("print_json({})", expression(random, d)),
        _ => format!("({} {} {})", str(random, d), random.pick(&["or", "and"]), str(random, d)),
    }
}

/// An expression that may stand in an f-string of single quotes on any Python.
fn plain(random: &mut Random, depth: usize) -> String {
    loop {
        let made = expression(random, depth);
        if !made.contains(['\'', '"', '{', '\\', '!', ':']) {
            return made;
        }
    }
}

fn number_spec(random: &mut Random) -> String {
    random.pick(&[
        "", "d", "5", "<6", "^7", ">8", "+", " ", "05", "x", "#x", "X", "b", "#o", ",", "_", ".2f", ".0f",
        "8.3f", "e", ".1e", "g", ".3g", "%", ".1%", "+.2f", "010,", "08.2f", "n", "c", "s", ".3", "#.0f",
        "*^9", "=+6", "012,.1f", "_x", "z.1f", "10_d", "G", "E", "F",
    ])
}

fn percent(random: &mut Random) -> String {
    random.pick(&[
        "%d", "%5d", "%-5d|", "%05d", "%x", "%#x", "%o", "%.2f", "%8.3f", "%e", "%g", "%s", "%r", "%c",
        "%i%%", "%+d", "% d", "%.3d", "%X", "%5.1f|", "%z", "%(a)s", "%",
    ])
}

fn slice(random: &mut Random) -> String {
    let part = |random: &mut Random| random.pick(&["", "", "0", "1", "2", "-1", "-2", "10", "-10", "n"]);
    let (start, stop) = (part(random), part(random));
    if random.below(2) == 0 {
        return format!("{start}:{stop}");
    }
    format!("{start}:{stop}:{}", random.pick(&["", "1", "2", "-1", "-2", "0", "3"]))
}

fn strings(random: &mut Random, depth: usize) -> String {
    match random.below(4) {
        0 => format!("[{}, {}]", str(random, depth), str(random, depth)),
        1 => format!("[str(i) for i in {}]", seq(random, depth)),
        2 => format!("(repr(i) for i in {})", seq(random, depth)),
        _ => format!("map(str, {})", seq(random, depth)),
    }
}

fn list(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(&[
            "l",
            "m",
            "o",
            "t",
            "r",
            "[1, 2]",
            "(3,)",
            "d",
            "by",
            "[0.5, 1]",
            "['b', 'A']",
            "st",
        ]);
    }
    let d = depth - 1;
    match random.below(24) {
        0 => format!("[{}, {}]", expression(random, d), expression(random, d)),
        1 => format!("({}, {})", expression(random, d), expression(random, d)),
        2 => format!("[*{}, {}]", seq(random, d), expression(random, d)),
        3 | 4 => format!("[i for i in {}]", seq(random, d)),
        5 | 6 => format!(
            "[i * 2 for i in {} if {}]",
            seq(random, d),
            random.pick(&["i", "i > 1", "i != 2", "i % 2 == 0"])
        ),
        7 => format!("[(i, j) for i in {} for j in {}]", seq(random, d), seq(random, 0)),
        8 => format!("[[j for j in {}] for i in {}]", seq(random, 0), seq(random, d)),
        9 => format!("sorted({})", seq(random, d)),
        10 => format!("sorted({}, reverse=True)", seq(random, d)),
        11 => format!("list({})", seq(random, d)),
        12 => format!("tuple({})", seq(random, d)),
        13 => format!(
            "list(range({}, {}, {}))",
            random.below(6),
            random.below(12),
            random.pick(&["1", "2", "-1", "3"])
        ),
        14 => format!("list(zip({}, {}))", seq(random, d), seq(random, d)),
        15 => format!("list(enumerate({}, {}))", seq(random, d), random.below(3)),
        16 => format!("list(reversed({}))", seq(random, d)),
        17 => format!("{}[{}]", seq(random, d), slice(random)),
        18 => format!("({} + {})", seq(random, d), seq(random, d)),
        19 => format!("({} * {})", seq(random, d), random.below(3)),
        20 => format!(
            "{}.{}({})",
            str(random, d),
            random.pick(&["split", "rsplit", "partition", "rpartition", "splitlines"]),
            random.pick(&["", "','", "' '", "'a'", "None", "'o', 1"])
        ),
        21 => format!("list({}.{}())", dict(random, d), random.pick(&["keys", "values", "items"])),
        22 => format!(
            "[l.{}, l]",
            random.pick(&[
                "append(4)",
                "pop()",
                "pop(0)",
                "insert(1, 9)",
                "remove(1)",
                "reverse()",
                "sort()",
                "extend(t)",
                "clear()",
                "copy()",
                "pop(9)",
                "insert(-1, 0)"
            ])
        ),
        _ => format!(
            "sorted({}, key={})",
            seq(random, d),
            random.pick(&["str", "len", "repr", "lambda x: -x", "lambda x: str(x)", "abs"])
        ),
    }
}

fn dict(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(&["d", "p", "{'a': 1}", "{1: 2, True: 3}", "{}", "d.b", "d['b']"]);
    }
    let d = depth - 1;
    match random.below(16) {
        0 => format!("{{{}: {}, 'q': {}}}", int(random, d), expression(random, d), expression(random, d)),
        1 => format!("{{i: str(i) for i in {}}}", seq(random, d)),
        2 => format!("{{**{}, 'x': {}}}", dict(random, d), expression(random, d)),
        3 => format!("dict({})", dict(random, d)),
        4 => format!("({} | {})", dict(random, d), dict(random, d)),
        5 => format!("dict(zip({}, {}))", seq(random, d), seq(random, d)),
        6 => format!("{}.get({}, {})", dict(random, d), expression(random, 0), expression(random, 0)),
        7 => format!(
            "{}.{}",
            random.pick(&["d", "p", "d.b"]),
            random.pick(&[
                "a",
                "b",
                "items",
                "zz",
                "c",
                "k",
                "keys()",
                "b.c",
                "pop('a')",
                "popitem()",
                "setdefault('q', 1)",
                "update(z=1)",
                "copy()",
                "fromkeys([1, 2])"
            ])
        ),
        8 => format!(
            "[d.{}, d]",
            random.pick(&[
                "pop('a')",
                "update(q=2)",
                "setdefault('n', [])",
                "clear()",
                "popitem()",
                "pop('zz', 0)"
            ])
        ),
        9 => format!("{{{}, {}}}", int(random, d), number(random, d)),
        10 => format!("{{i % 3 for i in {}}}", seq(random, d)),
        11 => format!(
            "sorted({{i for i in {} if isinstance(i, (int, float))}} {} st)",
            seq(random, d),
            random.pick(&["|", "&", "-", "^"])
        ),
        12 if random.below(2) == 0 => {
            format!("st.{}({})", random.pick(&["issubset", "isdisjoint", "issuperset"]), seq(random, d))
        }
        12 => format!(
            "sorted(st.{}([i for i in {} if isinstance(i, int)]))",
            random.pick(&["union", "intersection", "difference", "symmetric_difference"]),
            seq(random, d)
        ),
        // Only numbers have an order in a set that does not change from run to run.
        13 => format!("list({{i for i in {} if isinstance(i, (int, float))}})", seq(random, d)),
        14 => format!("{}({})", random.pick(&["type", "isinstance", "sorted", "len"]), expression(random, d)),
        _ => format!(
            "isinstance({}, {})",
            expression(random, d),
            random.pick(&["int", "(str, list)", "dict", "bool", "float"])
        ),
    }
}
