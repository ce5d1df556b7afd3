import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  addQuantity,
  compareQuantity,
  formatQuantity,
  isQuantity,
  milliValue,
  parseQuantity,
  QuantityError,
  quantityText,
  quantityToBytes,
  quantityValue,
} from './quantity.ts';

test('canonical form', () => {
  const cases: [string, string][] = [
    ['0', '0'],
    ['0Gi', '0'],
    ['-0', '0'],
    ['1Gi', '1Gi'],
    ['1.5Gi', '1536Mi'],
    ['1024Mi', '1Gi'],
    ['1025Mi', '1025Mi'],
    ['0.5Ki', '512'],
    ['1000Ki', '1000Ki'],
    ['100m', '100m'],
    ['0.1', '100m'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['2000', '2k'],
    ['1e3', '1e3'],
    ['1E3', '1e3'],
    ['12000e3', '12e6'],
    ['3e-2', '30e-3'],
    ['1E', '1E'],
    ['1Ei', '1Ei'],
    ['+5', '5'],
    ['-1.5', '-1500m'],
    ['.5', '500m'],
    ['1.', '1'],
    ['0.0000000001', '1n'],
    ['0.5Mi', '512Ki'],
    ['0.25', '250m'],
    ['0.001Ki', '1024m'],
    ['0.1Gi', '107374182400m'],
    ['5.858399Ki', '5999000576u'],
    ['1.0000001Ki', '1024000102400n'],
    ['5.859375Ki', '6000'],
    ['9223372036854775808Ki', '9223372036854775807'],
  ];
  for (const [text, want] of cases) assert.equal(formatQuantity(parseQuantity(text)), want, text);
});

test('malformed quantities are refused', () => {
  for (const text of ['', ' ', '1 ', 'a', '1.1.1', '1KI', '1ki', '1mi', '1e', '1e1.5', '--1', '1Gib', '0x10']) {
    assert.throws(() => parseQuantity(text), QuantityError, JSON.stringify(text));
    assert.equal(isQuantity(text), false, text);
  }
  assert.throws(() => parseQuantity('1e999999999'), QuantityError);
  assert.throws(() => parseQuantity('K'), /unable to parse quantity's suffix/);
  assert.throws(() => parseQuantity('Ei'), /unable to parse numeric part of quantity/);
  assert.throws(() => parseQuantity('9'.repeat(1000)), QuantityError);
});

// S-269
// Compat Types, P2, yes: a quantity that Go takes for canonical keeps its text
test('a quantity that upstream takes for canonical keeps its text', () => {
  const cases: [string, string][] = [
    ['1.234', '1.234'],
    ['1.5', '1500m'],
    ['0.234', '234m'],
    ['+5', '+5'],
    ['007k', '007k'],
    ['5E3', '5E3'],
    ['79590.751e3', '79590.751e3'],
    ['5000', '5k'],
    ['1024Mi', '1Gi'],
    ['010Ki', '010Ki'],
    ['1.5Gi', '1536Mi'],
    ['0', '0'],
    ['-0', '0'],
    // A sign, a point or a suffix alone are nothing.
    ['.', '0'],
    ['-', '0'],
    ['k', '0'],
    ['1234567890123456789', '1234567890123456789'],
  ];
  for (const [text, want] of cases) assert.equal(quantityText(text), want, text);
});

test('values are rounded away from zero', () => {
  assert.equal(milliValue(parseQuantity('250m')), 250);
  assert.equal(milliValue(parseQuantity('2')), 2000);
  assert.equal(milliValue(parseQuantity('1u')), 1);
  assert.equal(milliValue(parseQuantity('-1u')), -1);
  assert.equal(quantityValue(parseQuantity('1500m')), 2);
  assert.equal(quantityToBytes('64Mi'), 64 * 1024 * 1024);
  assert.equal(quantityToBytes('1G'), 1_000_000_000);
  assert.throws(() => quantityToBytes('-1'), QuantityError);
  assert.throws(() => quantityToBytes('8Ei'), QuantityError);
});

const text = fc
  .tuple(
    fc.constantFrom('', '-', '+'),
    fc.bigInt({ min: 0n, max: 999_999_999n }),
    fc.option(fc.nat({ max: 999_999 }), { nil: undefined }),
    fc.constantFrom('n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'e3', 'e-3', 'E6'),
  )
  .map(([sign, whole, fraction, suffix]) => `${sign}${whole}${fraction === undefined ? '' : `.${fraction}`}${suffix}`);

test('the canonical form means the same amount and is stable', () => {
  fc.assert(
    fc.property(text, (t) => {
      assert.ok(isQuantity(t));
      const parsed = parseQuantity(t);
      const printed = formatQuantity(parsed);
      const again = parseQuantity(printed);
      assert.equal(again.nano, parsed.nano);
      // A binary amount below or beside the powers of 1024 has no suffix that says it is binary: 6000 reads as 6k.
      if (parsed.format === 'BinarySI' && !printed.endsWith('i')) return;
      assert.equal(formatQuantity(again), printed);
    }),
    { numRuns: 500 },
  );
});

test('order and addition agree', () => {
  fc.assert(
    fc.property(text, text, text, (x, y, z) => {
      const [a, b, c] = [parseQuantity(x), parseQuantity(y), parseQuantity(z)];
      assert.equal(Math.sign(compareQuantity(a, b)), -Math.sign(compareQuantity(b, a)) + 0);
      assert.equal(compareQuantity(addQuantity(a, c), addQuantity(b, c)), compareQuantity(a, b));
    }),
  );
});
