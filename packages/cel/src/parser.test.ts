/** Where a text stops being an expression, and the sentence that says so; macros, limits and what the checker goes on to say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANY, CelCompileError, compileCel, DYN, objectOf } from './cel.ts';

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

/** The errors without the line they show: `LINE:COLUMN: message`. */
const errorsOf = (text: string): string[] =>
  issuesOf(text)
    .split(/^ERROR: <input>:/m)
    .slice(1)
    .map((error) => error.replace(/\n( \| [\s\S]*)?$/, ''));

const TABLES: Readonly<Record<string, readonly (readonly [text: string, error: string])[]>> = {
  Brackets: [
    ['f(x', "1:4: Syntax error: expected ')' but found end of expression"],
    ['(x', "1:3: Syntax error: expected ')' but found end of expression"],
    ['[1', "1:3: Syntax error: expected ']' but found end of expression"],
    ['{1: 2', "1:6: Syntax error: expected '}' but found end of expression"],
    ['f(x))', "1:5: Syntax error: unexpected ')'"],
    ['x]', "1:2: Syntax error: unexpected ']'"],
    ['[1)', "1:3: Syntax error: expected ']' but found ')'"],
    ['x[1', "1:4: Syntax error: expected ']' but found end of expression"],
    ['x[', '1:3: Syntax error: unexpected end of expression'],
    ['f(', '1:3: Syntax error: unexpected end of expression'],
    ['()', "1:2: Syntax error: unexpected ')'"],
    ['[,1]', "1:3: Syntax error: expected ']' but found '1'"],
    ['[1,,2]', "1:4: Syntax error: unexpected ','"],
    ['f(1,)', "1:5: Syntax error: unexpected ')'"],
    ['{1: 2,', '1:7: Syntax error: unexpected end of expression'],
    ['{1 2}', "1:4: Syntax error: expected ':' but found '2'"],
    ['{1: }', "1:5: Syntax error: unexpected '}'"],
    ['{1, 2}', "1:3: Syntax error: expected ':' but found ','"],
    ['[1 2]', "1:4: Syntax error: expected ']' but found '2'"],
    ['X{a 1}', "1:5: Syntax error: expected ':' but found '1'"],
    ['X{1: 2}', "1:3: Syntax error: expected a field name but found '1'"],
    ['X{a: 1', "1:7: Syntax error: expected '}' but found end of expression"],
  ],
  Operators: [
    ['x = 1', "1:3: Syntax error: unexpected character '='"],
    ['x === 1', "1:5: Syntax error: unexpected character '='"],
    ['x =! 1', "1:3: Syntax error: unexpected character '='"],
    ['x & y', "1:3: Syntax error: unexpected character '&'"],
    ['x | y', "1:3: Syntax error: unexpected character '|'"],
    ['x &&& y', "1:5: Syntax error: unexpected character '&'"],
    ['x and y', "1:3: Syntax error: unexpected 'and'"],
    ['x &&', '1:5: Syntax error: unexpected end of expression'],
    ['&& x', "1:1: Syntax error: unexpected '&&'"],
    ['x == == y', "1:6: Syntax error: unexpected '=='"],
    ['x + * y', "1:5: Syntax error: unexpected '*'"],
    ['! - x', "1:3: Syntax error: unexpected '-'"],
    ['-!x', "1:2: Syntax error: unexpected '!'"],
    ['x ? 1', "1:6: Syntax error: expected ':' but found end of expression"],
    ['x ? : 2', "1:5: Syntax error: unexpected ':'"],
    ['x ? 1 : ', '1:9: Syntax error: unexpected end of expression'],
    ['x ? 1, 2', "1:6: Syntax error: expected ':' but found ','"],
    ['x => 1', "1:3: Syntax error: unexpected character '='"],
    ['x; y', "1:2: Syntax error: unexpected character ';'"],
    ['x <> y', "1:4: Syntax error: unexpected '>'"],
  ],
  Selections: [
    ['x.', '1:3: Syntax error: expected a field name but found end of expression'],
    ['x..y', "1:3: Syntax error: expected a field name but found '.'"],
    ['x.in', "1:3: Syntax error: expected a field name but found 'in'"],
    ['x.true', "1:3: Syntax error: expected a field name but found 'true'"],
    ['x.1', "1:2: Syntax error: unexpected '.1'"],
    ['x?.y', "1:5: Syntax error: expected ':' but found end of expression"],
    ['x.?', '1:4: Syntax error: expected a field name but found end of expression'],
    ['x.`a', "1:3: Syntax error: unexpected character '`'"],
    ['x.?[1]', "1:4: Syntax error: expected a field name but found '['"],
    ['.', '1:2: Syntax error: expected a name but found end of expression'],
    ['.1x', "1:3: Syntax error: unexpected 'x'"],
    ['x.y z', "1:5: Syntax error: unexpected 'z'"],
    ['-1.x.', '1:6: Syntax error: expected a field name but found end of expression'],
    ['x.[1]', "1:3: Syntax error: expected a field name but found '['"],
  ],
  Literals: [
    ["'a", '1:1: Syntax error: unterminated or invalid string literal'],
    ["'a\\d'", '1:1: unable to unescape string'],
    ["'\\ud800'", '1:1: invalid unicode code point'],
    ["b'\\u0061'", '1:1: unable to unescape string'],
    ["'''a", '1:3: Syntax error: unterminated or invalid string literal'],
    ['1.', '1:3: Syntax error: expected a field name but found end of expression'],
    ['0x', "1:2: Syntax error: unexpected 'x'"],
    ['9223372036854775808', '1:1: invalid int literal'],
    ['-9223372036854775809', '1:1: invalid int literal'],
    ['18446744073709551616u', '1:1: invalid uint literal'],
    ['1e400', '1:1: invalid double literal'],
    ['1_000', "1:2: Syntax error: unexpected '_000'"],
    ['10Gi', "1:3: Syntax error: unexpected 'Gi'"],
    ['#x', "1:1: Syntax error: unexpected character '#'"],
    ['é', "1:1: Syntax error: unexpected character 'é'"],
    ['x == 1', "1:2: Syntax error: unexpected character ' '"],
    ['`a`', "1:1: Syntax error: unexpected 'a'"],
  ],
  Words: [
    ['', '1:1: Syntax error: unexpected end of expression'],
    ['if x', '1:1: reserved identifier: if'],
    ['x.all(package, true)', '1:7: reserved identifier: package'],
    ['for(x)', '1:1: reserved identifier: for'],
    ['null null', "1:6: Syntax error: unexpected 'null'"],
    ['not x', "1:5: Syntax error: unexpected 'x'"],
    ['let x = 1', '1:1: reserved identifier: let'],
    ['in', "1:1: Syntax error: unexpected 'in'"],
    ['x in', '1:5: Syntax error: unexpected end of expression'],
    ['{{ x }}', "1:6: Syntax error: expected ':' but found '}'"],
    ['$' + '{x}', "1:1: Syntax error: unexpected character '$'"],
    ['f(x y)', "1:5: Syntax error: expected ')' but found 'y'"],
    ['a b c d', "1:3: Syntax error: unexpected 'b'"],
    ['/* x */ y', "1:1: Syntax error: unexpected '/'"],
  ],
  Macros: [
    ['[1].all(x.y, true)', '1:10: argument must be a simple name'],
    ["[1].map('a', true)", '1:9: argument is not an identifier'],
    ['[1].filter(1, true)', '1:12: argument is not an identifier'],
    ['[1].exists(__result__, true)', '1:12: iteration variable overwrites accumulator variable'],
    ['[1].all(x, x, true)', '1:12: duplicate variable name: x'],
    ['[1].all(1, y, true)', '1:9: argument must be a simple name'],
    ['has(x)', '1:5: invalid argument to has() macro'],
    ["has('a')", '1:5: invalid argument to has() macro'],
    ['has(x.?y)', '1:6: invalid argument to has() macro'],
    ['has(x,', '1:7: Syntax error: unexpected end of expression'],
    ['x.optMap(1, y)', '1:10: optMap() variable name must be a simple identifier'],
    [
      "'a'.sortBy(x, x)",
      '1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression',
    ],
    ['[1].all(x', "1:10: Syntax error: expected ')' but found end of expression"],
    ['[1].all(, true)', "1:9: Syntax error: unexpected ','"],
    ['[1].all(x true)', "1:11: Syntax error: expected ')' but found 'true'"],
  ],
};

for (const [title, cases] of Object.entries(TABLES)) {
  // S-316: The first error of an expression in CEL is reported with its line and column, a type error in cel-go's words.
  // Compat Admission and quota, P2, yes: CEL syntax errors: the first one, with its line, column and snippet, in a
  //   short sentence; upstream lists what ANTLR's recovery finds after it
  test(`${title}: the first syntax error is reported with its place`, () => {
    for (const [text, error] of cases) assert.deepEqual(errorsOf(text), [error], text);
  });
}

test('the line of the error is shown with a mark below, wide characters with a wide one', () => {
  assert.equal(
    issuesOf("x == 'é' &&\n\t'日本' = y"),
    ["ERROR: <input>:2:7: Syntax error: unexpected character '='", " |  '日本' = y", ' | ..．．..^'].join('\n'),
  );
});

test('a string that its line does not end is reported where it begins', () => {
  assert.match(
    issuesOf('"a\nb"'),
    /^ERROR: <input>:1:1: Syntax error: unterminated or invalid string literal\n \| "a\n/,
  );
});

// S-316
test('reading ends at the limits of upstream', () => {
  assert.deepEqual(errorsOf('('.repeat(260)), ['-1:0: expression recursion limit exceeded: 250']);
  assert.deepEqual(errorsOf(`x${'.y'.repeat(260)}`), ['-1:0: max recursion depth exceeded']);
  assert.deepEqual(errorsOf(' '.repeat(100_001)), [
    '-1:0: expression code point size exceeds limit: size: 100001, limit 100000',
  ]);
});

test('texts within the limits are accepted, a lone comma in brackets too', () => {
  assert.equal(issuesOf(`${'('.repeat(240)}x${')'.repeat(240)}`), '');
  assert.equal(issuesOf(Array.from({ length: 240 }, () => 'x').join(' + ')), '');
  assert.equal(issuesOf(Array.from({ length: 2000 }, () => 'x').join(' && ')), '');
  for (const text of ['[,]', '{,}', '[x,]', 'f(x)'.replace('f', 'dyn')]) assert.equal(issuesOf(text), '', text);
});

test('the checker ends at the first error', () => {
  const errors = (text: string): string[] => {
    const self = objectOf('selfType1', { name: { kind: 'string', name: 'string', params: [] } });
    try {
      compileCel(text, { variables: { self, x: DYN } });
      return [];
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
      return error.message.split('\n').filter((line) => line.includes('<input>'));
    }
  };
  const tail = (text: string): string[] => errors(text).map((line) => line.replace(/^.*<input>:/, ''));
  assert.deepEqual(tail('self.name - 1 in self.name'), [
    "1:11: found no matching overload for '_-_' applied to '(string, int)'",
  ]);
  assert.deepEqual(tail('[self.nope].size() + true'), ["1:6: undefined field 'nope'"]);
  assert.deepEqual(tail('[1, 2].exists_one(v, v)'), ["1:22: expected type 'bool' but found 'int'"]);
  assert.deepEqual(tail("['a'].filter(v, 1)"), ["1:17: expected type 'bool' but found 'int'"]);
  assert.deepEqual(tail("self.name.foo && ['a']"), ["1:10: type 'string' does not support field selection"]);
  assert.deepEqual(tail('[] && true'), ["1:1: expected type 'bool' but found 'list(_var0)'"]);
  assert.deepEqual(tail('[1].filter(.v, true)'), ['1:13: argument is not an identifier']);
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
  assert.equal(
    refused('duration').split('\n')[0],
    "compilation failed: ERROR: <input>:1:1: undeclared reference to 'duration' (in container '')",
  );
  assert.equal(refused("x.find('a(')"), 'program instantiation failed: error parsing regexp: missing closing ): `a(`');
  assert.match(refused("x.matches('a(')"), /^compilation failed: .*invalid matches argument/);
  assert.match(refused('kubernetes.Quantity'), /undeclared reference to 'kubernetes'/);
});
