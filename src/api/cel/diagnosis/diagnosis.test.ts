/**
 * Faults of texts in upstream's words, count and order: what its parser, which ANTLR generates, says of each of these. The
 * tables were made with the real library.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANY, CelCompileError, compileCel, DYN, objectOf } from '../cel.ts';

/** What may begin an expression, as messages list it. */
const OPERAND =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

const VARIABLES = { x: DYN, y: DYN };

function issuesOf(text: string): string {
  try {
    compileCel(text, { variables: VARIABLES, resultTypes: [ANY] });
    return '';
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return error.issues;
  }
}

/** Each fault without the line it shows: `LINE:COLUMN: message`. */
const faultsOf = (text: string): string[] =>
  issuesOf(text)
    .split(/^ERROR: <input>:/m)
    .slice(1)
    .map((fault) => fault.replace(/\n( \| [\s\S]*)?$/, ''));

const TABLES: Readonly<Record<string, readonly (readonly [text: string, faults: readonly string[]])[]>> = {
  Brackets: [
    ['f(x', ["1:4: Syntax error: missing ')' at '<EOF>'"]],
    ['(x', ["1:3: Syntax error: missing ')' at '<EOF>'"]],
    ['[1', ["1:3: Syntax error: mismatched input '<EOF>' expecting {']', ','}"]],
    ['{1: 2', ["1:6: Syntax error: mismatched input '<EOF>' expecting {'}', ','}"]],
    ['f(x))', ["1:5: Syntax error: extraneous input ')' expecting <EOF>"]],
    ['x]', ["1:2: Syntax error: extraneous input ']' expecting <EOF>"]],
    ['[1)', ["1:3: Syntax error: mismatched input ')' expecting {']', ','}"]],
    ['x[1', ["1:4: Syntax error: missing ']' at '<EOF>'"]],
    [
      'x[',
      [
        "1:3: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
      ],
    ],
    [
      'f(',
      [
        "1:3: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
      ],
    ],
    ['()', [`1:2: Syntax error: mismatched input ')' expecting ${OPERAND}`]],
    ['[,1]', ["1:3: Syntax error: extraneous input '1' expecting ']'"]],
    ['[1,,2]', ["1:4: Syntax error: mismatched input ',' expecting ']'"]],
    ['f(1,)', [`1:5: Syntax error: mismatched input ')' expecting ${OPERAND}`]],
    ['{1: 2,', ["1:7: Syntax error: missing '}' at '<EOF>'"]],
    ['{1 2}', ["1:4: Syntax error: missing ':' at '2'"]],
    ['{1: }', [`1:5: Syntax error: mismatched input '}' expecting ${OPERAND}`]],
    [
      '{1, 2}',
      [
        "1:3: Syntax error: mismatched input ',' expecting ':'",
        "1:5: Syntax error: extraneous input '2' expecting '}'",
      ],
    ],
    ['[1 2]', ["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]],
    ['X{a 1}', ["1:5: Syntax error: missing ':' at '1'"]],
    ['X{1: 2}', ["1:3: Syntax error: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"]],
    ['X{a: 1', ["1:7: Syntax error: mismatched input '<EOF>' expecting {'}', ','}"]],
  ],
  Operators: [
    [
      'x = 1',
      [
        "1:3: Syntax error: token recognition error at: '= '",
        "1:5: Syntax error: extraneous input '1' expecting <EOF>",
      ],
    ],
    ['x === 1', ["1:5: Syntax error: token recognition error at: '= '"]],
    [
      'x =! 1',
      [
        "1:3: Syntax error: token recognition error at: '=!'",
        "1:6: Syntax error: extraneous input '1' expecting <EOF>",
      ],
    ],
    [
      'x & y',
      [
        "1:3: Syntax error: token recognition error at: '& '",
        "1:5: Syntax error: extraneous input 'y' expecting <EOF>",
      ],
    ],
    [
      'x | y',
      [
        "1:3: Syntax error: token recognition error at: '| '",
        "1:5: Syntax error: extraneous input 'y' expecting <EOF>",
      ],
    ],
    ['x &&& y', ["1:5: Syntax error: token recognition error at: '& '"]],
    ['x and y', ["1:3: Syntax error: mismatched input 'and' expecting <EOF>"]],
    ['x &&', [`1:5: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`]],
    ['&& x', [`1:1: Syntax error: extraneous input '&&' expecting ${OPERAND}`]],
    ['x == == y', [`1:6: Syntax error: extraneous input '==' expecting ${OPERAND}`]],
    ['x + * y', [`1:5: Syntax error: extraneous input '*' expecting ${OPERAND}`]],
    ['! - x', ["1:5: Syntax error: no viable alternative at input '- x'"]],
    ['-!x', ["1:2: Syntax error: no viable alternative at input '-!'"]],
    ['x ? 1', ["1:6: Syntax error: mismatched input '<EOF>' expecting ':'"]],
    [
      'x ? : 2',
      [
        `1:5: Syntax error: extraneous input ':' expecting ${OPERAND}`,
        "1:8: Syntax error: mismatched input '<EOF>' expecting ':'",
      ],
    ],
    ['x ? 1 : ', [`1:9: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`]],
    ['x ? 1, 2', ["1:6: Syntax error: mismatched input ',' expecting ':'"]],
    [
      'x => 1',
      [
        "1:3: Syntax error: token recognition error at: '=>'",
        "1:6: Syntax error: extraneous input '1' expecting <EOF>",
      ],
    ],
    [
      'x; y',
      ["1:2: Syntax error: token recognition error at: ';'", "1:4: Syntax error: extraneous input 'y' expecting <EOF>"],
    ],
    ['x <> y', [`1:4: Syntax error: extraneous input '>' expecting ${OPERAND}`]],
  ],
  Selections: [
    ['x.', ["1:3: Syntax error: no viable alternative at input '.'"]],
    ['x..y', ["1:3: Syntax error: no viable alternative at input '..'"]],
    [
      'x.in',
      [
        "1:3: Syntax error: no viable alternative at input '.in'",
        `1:5: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`,
      ],
    ],
    ['x.true', ["1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"]],
    ['x.1', ["1:2: Syntax error: extraneous input '.1' expecting <EOF>"]],
    ['x?.y', ["1:5: Syntax error: mismatched input '<EOF>' expecting ':'"]],
    [
      'x.?',
      [
        "1:4: Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}",
        '1:4: unsupported ident kind',
      ],
    ],
    [
      'x.`a',
      ["1:3: Syntax error: token recognition error at: '`a'", "1:5: Syntax error: no viable alternative at input '.'"],
    ],
    [
      'x.?[1]',
      ["1:4: Syntax error: mismatched input '[' expecting {IDENTIFIER, ESC_IDENTIFIER}", '1:4: unsupported ident kind'],
    ],
    ['.', ["1:2: Syntax error: no viable alternative at input '.'"]],
    ['.1x', ["1:3: Syntax error: extraneous input 'x' expecting <EOF>"]],
    ['x.y z', ["1:5: Syntax error: extraneous input 'z' expecting <EOF>"]],
    ['-1.x.', ["1:6: Syntax error: no viable alternative at input '.'"]],
    ['x.[1]', ["1:3: Syntax error: no viable alternative at input '.['"]],
  ],
  Literals: [
    [
      "'a",
      [
        "1:1: Syntax error: token recognition error at: ''a'",
        `1:3: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`,
      ],
    ],
    [
      "'a\\d'",
      [
        "1:1: Syntax error: token recognition error at: ''a\\d'",
        "1:5: Syntax error: token recognition error at: '''",
        `1:6: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`,
      ],
    ],
    ["'\\ud800'", ['1:1: invalid unicode code point']],
    ["b'\\u0061'", ['1:1: unable to unescape string']],
    ["'''a", ["1:3: Syntax error: token recognition error at: ''a'"]],
    ['1.', ["1:3: Syntax error: no viable alternative at input '.'"]],
    ['0x', ["1:2: Syntax error: extraneous input 'x' expecting <EOF>"]],
    ['9223372036854775808', ['1:1: invalid int literal']],
    ['-9223372036854775809', ['1:1: invalid int literal']],
    ['18446744073709551616u', ['1:1: invalid uint literal']],
    ['1e400', ['1:1: invalid double literal']],
    ['1_000', ["1:2: Syntax error: extraneous input '_000' expecting <EOF>"]],
    ['10Gi', ["1:3: Syntax error: extraneous input 'Gi' expecting <EOF>"]],
    ['#x', ["1:1: Syntax error: token recognition error at: '#'"]],
    [
      'é',
      [
        "1:1: Syntax error: token recognition error at: 'é'",
        `1:2: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`,
      ],
    ],
    ['x == 1', ["1:2: Syntax error: token recognition error at: ' '"]],
    ['`a`', [`1:1: Syntax error: mismatched input '\`a\`' expecting ${OPERAND}`]],
  ],
  Words: [
    ['', [`1:0: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`]],
    ['if x', ['1:1: reserved identifier: if', "1:4: Syntax error: extraneous input 'x' expecting <EOF>"]],
    ['x.all(package, true)', ['1:7: reserved identifier: package', '1:7: argument must be a simple name']],
    ['for(x)', ['1:1: reserved identifier: for']],
    ['null null', ["1:6: Syntax error: extraneous input 'null' expecting <EOF>"]],
    ['not x', ["1:5: Syntax error: extraneous input 'x' expecting <EOF>"]],
    [
      'let x = 1',
      [
        '1:1: reserved identifier: let',
        "1:5: Syntax error: mismatched input 'x' expecting <EOF>",
        "1:7: Syntax error: token recognition error at: '= '",
      ],
    ],
    [
      'in',
      [
        `1:1: Syntax error: mismatched input 'in' expecting ${OPERAND}`,
        `1:3: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`,
      ],
    ],
    ['x in', [`1:5: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`]],
    [
      '{{ x }}',
      [
        "1:6: Syntax error: mismatched input '}' expecting ':'",
        "1:7: Syntax error: mismatched input '}' expecting ':'",
      ],
    ],
    [
      '$' + '{x}',
      ["1:1: Syntax error: token recognition error at: '$'", "1:4: Syntax error: mismatched input '}' expecting ':'"],
    ],
    ['f(x y)', ["1:5: Syntax error: extraneous input 'y' expecting ')'"]],
    ['a b c d', ["1:3: Syntax error: mismatched input 'b' expecting <EOF>"]],
    [
      '/* x */ y',
      [
        `1:1: Syntax error: mismatched input '/' expecting ${OPERAND}`,
        `1:2: Syntax error: extraneous input '*' expecting ${OPERAND}`,
        `1:7: Syntax error: extraneous input '/' expecting ${OPERAND}`,
      ],
    ],
  ],
  Macros: [
    ['[1].all(x.y, true)', ['1:10: argument must be a simple name']],
    ["[1].map('a', true)", ['1:9: argument is not an identifier']],
    ['[1].filter(1, true)', ['1:12: argument is not an identifier']],
    ['[1].exists(__result__, true)', ['1:12: iteration variable overwrites accumulator variable']],
    ['[1].all(x, x, true)', ['1:12: duplicate variable name: x']],
    ['[1].all(1, y, true)', ['1:9: argument must be a simple name']],
    ['has(x)', ['1:5: invalid argument to has() macro']],
    ["has('a')", ['1:5: invalid argument to has() macro']],
    ['has(x.?y)', ['1:6: invalid argument to has() macro']],
    ['has(x,', [`1:7: Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`]],
    ['x.optMap(1, y)', ['1:10: optMap() variable name must be a simple identifier']],
    [
      "'a'.sortBy(x, x)",
      ['1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression'],
    ],
    ['[1].all(x', ["1:10: Syntax error: missing ')' at '<EOF>'"]],
    [
      '[1].all(, true)',
      [
        "1:9: Syntax error: extraneous input ',' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
      ],
    ],
    ['[1].all(x true)', ["1:11: Syntax error: extraneous input 'true' expecting ')'"]],
  ],
};

for (const [title, cases] of Object.entries(TABLES)) {
  test(`${title} as ANTLR tells them`, () => {
    for (const [text, faults] of cases) assert.deepEqual(faultsOf(text), faults, text);
  });
}

test('the line of the fault is shown with a mark below, wide characters with a wide one', () => {
  assert.equal(
    issuesOf("x == 'é' &&\n\t'日本' = y"),
    [
      "ERROR: <input>:2:7: Syntax error: token recognition error at: '= '",
      " |  '日本' = y",
      ' | ..．．..^',
      "ERROR: <input>:2:9: Syntax error: extraneous input 'y' expecting <EOF>",
      " |  '日本' = y",
      ' | ..．．....^',
    ].join('\n'),
  );
});

test('what is no token is named with everything that looked like the beginning of one', () => {
  assert.match(issuesOf('"a\nb"'), /^ERROR: <input>:1:1: Syntax error: token recognition error at: '"a\n'\n \| "a\n/);
});

test('a name that is repeated by optMap is told twice, as often as upstream uses it', () => {
  assert.equal(faultsOf('z.optMap(v, v)').length, 2);
});

test('reading is given up at the limits of upstream', () => {
  assert.deepEqual(faultsOf('('.repeat(260)), ['-1:0: expression recursion limit exceeded: 250']);
  assert.deepEqual(faultsOf(`x${'.y'.repeat(260)}`), ['-1:0: max recursion depth exceeded']);
  const many = faultsOf('#'.repeat(200));
  assert.equal(many.length, 100);
  assert.match(issuesOf('#'.repeat(200)), /\n1 more errors were truncated$/);
  const skipped = faultsOf(`f(1 : ${'2 '.repeat(300)})`);
  assert.equal(skipped[0], '-1:0: error recovery token lookahead limit exceeded: 256');
  assert.match(faultsOf('['.concat('1 : , '.repeat(40), ']')).at(-1)!, /expecting|limit/);
});

test('depth that is allowed stays allowed beside the fast way', () => {
  assert.equal(issuesOf(`${'('.repeat(120)}x${')'.repeat(120)}`), '');
  assert.equal(issuesOf(Array.from({ length: 240 }, () => 'x').join(' + ')), '');
  assert.equal(issuesOf(Array.from({ length: 2000 }, () => 'x').join(' && ')), '');
});

test('the checker goes on after a fault: what it made of it takes part in the next', () => {
  const faults = (text: string): string[] => {
    const self = objectOf('selfType1', { name: { kind: 'string', name: 'string', params: [] } });
    try {
      compileCel(text, { variables: { self, x: DYN } });
      return [];
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
      return error.message.split('\n').filter((line) => line.includes('<input>'));
    }
  };
  const tail = (text: string): string[] => faults(text).map((line) => line.replace(/^.*<input>:/, ''));
  assert.deepEqual(tail('self.name - 1 in self.name'), [
    "1:11: found no matching overload for '_-_' applied to '(string, int)'",
    "1:15: found no matching overload for '@in' applied to '(!error!, string)'",
  ]);
  assert.deepEqual(tail('[self.nope].size() + true'), [
    "1:6: undefined field 'nope'",
    "1:20: found no matching overload for '_+_' applied to '(int, bool)'",
  ]);
  assert.deepEqual(tail('[1, 2].exists_one(v, v)'), [
    "1:18: found no matching overload for '_?_:_' applied to '(int, int, int)'",
  ]);
  assert.deepEqual(tail("['a'].filter(v, 1)"), [
    "1:13: found no matching overload for '_?_:_' applied to '(int, list(string), list(string))'",
  ]);
  assert.deepEqual(tail("self.name.foo && ['a']"), [
    "1:10: type 'string' does not support field selection",
    "1:18: expected type 'bool' but found 'list(string)'",
  ]);
  assert.deepEqual(tail('[] && true'), ["1:1: expected type 'bool' but found 'list(_var0)'"]);
  assert.deepEqual(tail('[1].filter(.v, true)'), ["1:13: undeclared reference to '.v' (in container '')"]);
  assert.deepEqual(tail("x.name('a') == self.name('a')"), [
    "1:25: found no matching overload for 'name' applied to 'selfType1.(string)'",
  ]);
});

test('a type without a value and a pattern that is none make no program', () => {
  const refused = (text: string): string => {
    try {
      compileCel(text, { variables: VARIABLES, resultTypes: [ANY] });
      return '';
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
      return error.message;
    }
  };
  assert.equal(refused('duration'), 'program instantiation failed: reference to undefined type: duration');
  assert.equal(refused("x.find('a(')"), 'program instantiation failed: error parsing regexp: missing closing ): `a(`');
  assert.match(refused("x.matches('a(')"), /^compilation failed: .*invalid matches argument/);
  assert.match(refused('kubernetes.Quantity'), /undeclared reference to 'kubernetes'/);
});
