import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ApiError } from '../meta/status.ts';
import { MAX_DEPTH, parseJson, parseJsonInPieces, parseStored, parseYaml } from './parse-json.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const is400 =
  (message: RegExp) =>
  (error: ApiError): boolean =>
    error.code === 400 && message.test(error.message);

test('any JSON value comes back, without duplicates', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = JSON.stringify(value);
      const parsed = parseJson(bytes(text));
      assert.equal(JSON.stringify(parsed.value), text);
      assert.deepEqual(parsed.duplicates(), []);
    }),
    { numRuns: 300 },
  );
});

test('duplicate members are found by path', () => {
  const cases: [string, string[]][] = [
    ['{"a":1,"a":2}', ['a']],
    ['{"spec":{"bar":1,"x":{},"bar":2}}', ['spec.bar']],
    ['{"spec":{"containers":[{"x":1},{"x":1,"x":[],"x":3}]}}', ['spec.containers[1].x']],
    ['{"b":1,"a":{"c":1,"c":2},"b":2}', ['a.c', 'b']],
    ['{"\\u0061":1,"a":2}', ['a']],
    ['{"a:{":1,"b\\"":"\\\\","c":":"}', []],
  ];
  for (const [text, want] of cases) assert.deepEqual(parseJson(bytes(text)).duplicates(), want, text);
  assert.deepEqual(parseJson(bytes('{"a":1,"a":2}')).value, { a: 2 });
});

test('malformed JSON is 400 and says where', () => {
  const cases: [string, RegExp][] = [
    ['', /unexpected end of JSON input/],
    ['{"a":1', /unexpected end of JSON input/],
    ['{"a":1,}', /invalid character '}' looking for beginning of object key string \(line 1, column 8\)/],
    ['{\n  "a": tru}', /invalid character '}' in literal true \(expecting 'e'\) \(line 2, column 11\)/],
    ['[1] x', /invalid character 'x' after top-level value/],
    ['{"a" 1}', /invalid character '1' after object key/],
    ['[1 2]', /invalid character '2' after array element/],
    ['"a\nb"', /invalid character '\\n' in string literal/],
    ['-', /unexpected end of JSON input/],
    ['"\\x"', /invalid character 'x' in string escape code/],
  ];
  for (const [text, message] of cases) assert.throws(() => parseJson(bytes(text)), is400(message), text);
});

test('the strict scanner and JSON.parse agree on what is JSON', () => {
  const characters = '{}[]",:\\0123456789.eE+-truefalsn u'.split('');
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...characters), maxLength: 15 }), (text) => {
      let ok = true;
      try {
        JSON.parse(text);
      } catch {
        ok = false;
      }
      // "1E309" is JSON, but no number that could be sent out again.
      if (ok && JSON.stringify(JSON.parse(text)) === 'null' && text.trim() !== 'null') return;
      if (ok && /[0-9]{3}/.test(text)) return;
      if (ok) parseJson(bytes(text));
      else assert.throws(() => parseJson(bytes(text)), is400(/invalid character|unexpected end/), text);
    }),
    { numRuns: 2000 },
  );
});

// S-113: Depth, size, duplicates and numbers of JSON and YAML are bounded before anything recurses.
test('depth is bounded before anything recurses', () => {
  const nested = (n: number): string => '['.repeat(n) + ']'.repeat(n);
  parseJson(bytes(nested(MAX_DEPTH)));
  assert.throws(() => parseJson(bytes(nested(MAX_DEPTH + 1))), is400(/maximum depth/));
  assert.throws(() => parseJson(bytes('{"a":'.repeat(100_000))), is400(/maximum depth/));
  assert.throws(() => parseYaml('{"a":'.repeat(100_000)), is400(/maximum depth/));
  assert.throws(() => parseYaml(`a: ${nested(2000)}`), is400(/maximum depth/));
});

// S-113
test('numbers are exact or refused', () => {
  assert.deepEqual(
    parseJson(bytes('[9007199254740991,1e20,100000000000000000000,0.1]')).value,
    [9007199254740991, 1e20, 1e20, 0.1],
  );
  for (const text of ['{"spec":{"x":[9223372036854775807]}}', '{"spec":{"x":[1e400]}}']) {
    assert.throws(() => parseJson(bytes(text)), is400(/cannot keep number .* at spec\.x\[0\] exactly/), text);
  }
  assert.throws(() => parseYaml('a: 9223372036854775807'), is400(/cannot keep number/));
  assert.throws(() => parseYaml('a: .inf'), is400(/^json: unsupported value: \+Inf$/));
});

// S-256
test('where wide integers are wanted they are kept as Go keeps them: int64 exactly, beyond it the nearest double', async () => {
  const wideIntegers = { wideIntegers: true };
  const texts: [string, unknown][] = [
    ['[9223372036854775807]', [9223372036854775807n]],
    [
      '{"a":-9223372036854775808,"b":{"c":9007199254740992}}',
      { a: -9223372036854775808n, b: { c: 9007199254740992n } },
    ],
    ['[9007199254740991,1e20,1.5]', [9007199254740991, 1e20, 1.5]],
    ['[9223372036854775808,1234567890123456789012]', [2 ** 63, 1.2345678901234568e21]],
    ['{"a":"9223372036854775807"}', { a: '9223372036854775807' }],
  ];
  const pause = async (): Promise<void> => undefined;
  for (const [text, value] of texts) {
    assert.deepEqual(parseJson(bytes(text), wideIntegers).value, value, text);
    assert.deepEqual(parseYaml(text, wideIntegers).value, value, text);
    assert.deepEqual(parseYaml(`# no JSON\n${text}`, wideIntegers).value, value, text);
    assert.deepEqual((await parseJsonInPieces(bytes(text), pause, wideIntegers)).value, value, text);
    assert.deepEqual(parseStored(text), value, text);
  }
  assert.equal(JSON.stringify({ a: [9223372036854775807n] }), '{"a":[9223372036854775807]}');
  assert.throws(() => parseJson(bytes('[1e400]'), wideIntegers), is400(/cannot keep number 1e400/));
});

test('YAML as Kubernetes reads it', () => {
  const cases: [string, unknown][] = [
    ['a: yes\nb: Off\nc: "yes"\nd: no\ne: y\n', { a: true, b: false, c: 'yes', d: false, e: true }],
    ['a: 0777\nb: 0x1f\nc: 1_000\nd: 0o17\n', { a: 511, b: 31, c: 1000, d: 15 }],
    ['a: 1:30\nb: 2001-01-01\nc: 1.5\nd: 1e3\n', { a: '1:30', b: '2001-01-01', c: 1.5, d: 1000 }],
    [
      'a: e1000e\nb: e1000\nc: 08\nd: -0x1f\ne: +5\nf: .5\ng: 1.\nh: 0b11\ni: 1e\nj: 0\nk: _1\n',
      { a: 'e1000e', b: 'e1000', c: 8, d: -31, e: 5, f: 0.5, g: 1, h: 3, i: '1e', j: 0, k: '_1' },
    ],
    [
      'a: 1.2.3\nb: 12:30:45\nc: 0x\nd: 1__\ne: v1\nf: 10Gi\ng: 100m\n',
      { a: '1.2.3', b: '12:30:45', c: '0x', d: 1, e: 'v1', f: '10Gi', g: '100m' },
    ],
    ['a: ~\nb:\nc: null\n', { a: null, b: null, c: null }],
    ['a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n', { a: { b: 1 }, c: { b: 1 }, d: { b: 1, e: 2 } }],
    ['true: 1\n2: b\n', { true: 1, 2: 'b' }],
    ['---\na: 1\n---\n', { a: 1 }],
    ['{a: b}', { a: 'b' }],
    ['{"a": [1, "x"]}', { a: [1, 'x'] }],
    ['a: |\n  x\n  y\n', { a: 'x\ny\n' }],
    // The file's last line may lack its end: so does the text then.
    ['a:\n- b: |\n    x\n    y', { a: [{ b: 'x\ny' }] }],
    ['a: >\n  x\n  y ', { a: 'x y ' }],
    ['a: |\n  x\n# c', { a: 'x\n' }],
    ['a: |\n  x\n  ', { a: 'x\n' }],
    ['a: 1e400\nb: -1e400\n', { a: '1e400', b: '-1e400' }],
    ['', null],
  ];
  for (const [text, want] of cases) assert.deepEqual(parseYaml(text).value, want, text);
});

test('YAML trouble is 400', () => {
  assert.throws(() => parseYaml('a: 1\n---\nb: 2\n'), is400(/single document/));
  assert.throws(() => parseYaml('a: [1\n'), is400(/yaml: line/));
  assert.throws(() => parseYaml('a: .NaN\n'), is400(/^json: unsupported value: NaN$/));
  assert.throws(() => parseYaml('a: -.inf\n'), is400(/^json: unsupported value: -Inf$/));
  for (const code of [0, 1, 0x1b, 0x7f, 0x9f, 0xfffe]) {
    const text = `a: "${String.fromCharCode(code)}"\n`;
    assert.throws(() => parseYaml(text), is400(/^yaml: control characters are not allowed$/), String(code));
  }
  assert.throws(() => parseYaml('a: *nope'), is400(/yaml: /));
  let bomb = 'a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n';
  for (let i = 1; i < 9; i++)
    bomb += `a${i}: &a${i} [${Array(10)
      .fill(`*a${i - 1}`)
      .join(',')}]\n`;
  assert.throws(() => parseYaml(bomb), is400(/alias/));
});

// S-113
// Compat HTTP, P0, yes: YAML bodies: one document, duplicate keys are found, control characters are 400
test('YAML duplicates, aliases and odd keys', () => {
  assert.deepEqual(parseYaml('a: 1\nb:\n  - x: 1\n    x: 2\na: 3\n').duplicates(), [
    'line 4: key "x" already set in map',
    'line 5: key "a" already set in map',
  ]);
  assert.deepEqual(parseYaml('{"a":1,"a":2}').duplicates(), ['line 1: key "a" already set in map']);
  // Keys are distinguished by value; a merge may come again.
  assert.deepEqual(parseYaml('1: a\n"1": b\n1.0: c\n').duplicates(), []);
  assert.deepEqual(parseYaml('yes: a\ntrue: b\n').duplicates(), ['line 2: key true already set in map']);
  assert.deepEqual(parseYaml('<<: {a: 1}\n<<: {b: 2}\n').duplicates(), []);
  const shared = parseYaml('a: &x {b: 1}\nc: *x\n').value as { a: object; c: object };
  assert.notEqual(shared.a, shared.c);
  const odd = parseYaml('__proto__: {x: 1}\n').value as object;
  assert.deepEqual(Object.keys(odd), ['__proto__']);
  assert.equal(Object.getPrototypeOf(odd), Object.prototype);
});

// S-232
test('the reader in pieces says what the other says, and pauses on the way', async () => {
  const many = `{${Array.from({ length: 100_000 }, (_, at) => `"k${at}": ${at}`).join(',')}`;
  let pauses = 0;
  const pause = async (): Promise<void> => void pauses++;
  const outcome = async (read: () => unknown): Promise<unknown> => {
    try {
      const { value, duplicates } = (await read()) as ReturnType<typeof parseJson>;
      return { value, duplicates: duplicates() };
    } catch (error) {
      return (error as Error).message;
    }
  };
  const texts = [`${many}}`, `${many},"k7": "again"}`, `${many}, bad: [`, '{"a": 1, "a": 2}', '{"a": 1', ''];
  for (const text of texts) {
    assert.deepEqual(
      await outcome(() => parseJsonInPieces(bytes(text), pause)),
      await outcome(() => parseJson(bytes(text))),
      text.slice(-20),
    );
  }
  assert.ok(pauses > 20, `${pauses} pauses`);
});

// S-232: A large body is read in pieces, with others served in between, and comes to the same as in one go.
test('any text, JSON or nearly, is read in pieces as in one go', async () => {
  const outcome = async (read: () => unknown): Promise<unknown> => {
    try {
      const { value, duplicates } = (await read()) as ReturnType<typeof parseJson>;
      return { value: JSON.stringify(value), duplicates: duplicates() };
    } catch (error) {
      return (error as Error).message;
    }
  };
  const key = fc.constantFrom('a', 'b', '__proto__', '\\u0061', 'x'.repeat(20), '\\"', '1');
  const { json } = fc.letrec<{ json: string; list: string; object: string }>((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(
        '1',
        '-0',
        '1e3',
        '12345678901234567890',
        '1e999',
        'true',
        'null',
        '"long text of a body"',
        '"\\n"',
      ),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('json') as fc.Arbitrary<string>).map((items) => `[ ${items.join(' , ')}]`),
    object: fc
      .array(fc.tuple(key, tie('json') as fc.Arbitrary<string>))
      .map((members) => `{${members.map(([name, value]) => `"${name}" :${value}`).join(',\n')} }`),
  }));
  const damage = fc.record({
    at: fc.nat({ max: 200 }),
    put: fc.constantFrom('', '', '', '{', ']', '"', ',', '\\', 'x', '\n'),
  });
  await fc.assert(
    fc.asyncProperty(json as fc.Arbitrary<string>, damage, async (whole, { at, put }) => {
      const text = put === '' ? whole : `${whole.slice(0, at)}${put}${whole.slice(at + 1)}`;
      // Over the size of a piece, so that the reader stops on the way.
      const padded = `[${`"${'y'.repeat(1000)}",`.repeat(70)}${text}]`;
      for (const one of [text, padded]) {
        assert.deepEqual(
          await outcome(() => parseJsonInPieces(bytes(one), async () => {})),
          await outcome(() => parseJson(bytes(one))),
          text,
        );
      }
    }),
    { numRuns: 300 },
  );
});
