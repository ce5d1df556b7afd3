/** Semantic versions (2.0.0), strict unless normalising is asked for. */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { ONE, TRAVERSE_ONLY } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { defineEquality } from '../equality.ts';
import { CelEvaluationError } from '../errors.ts';
import { CelOpaque, intFromBigInt } from '../values.ts';

const NAME = 'kubernetes.Semver';

interface Version {
  readonly core: readonly [major: bigint, minor: bigint, patch: bigint];
  readonly pre: readonly string[];
}

type Boxed = CelOpaque<Version>;

/** Longest text that is taken for a version. */
const MAX_TEXT = 4096;

const NUMBER = '0|[1-9][0-9]*';
const PRE = `(?:${NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`;
const VERSION = new RegExp(
  `^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})(?:-(${PRE}(?:\\.${PRE})*))?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$`,
);
const MAX_NUMBER = 1n << 64n;

/** Undefined when the text is no version: also where a number does not fit 64 bits. */
function parseVersion(text: string, normalize: boolean): Version | undefined {
  const match = text.length > MAX_TEXT ? null : VERSION.exec(normalize ? normalized(text) : text);
  if (match === null) return undefined;
  const [major, minor, patch] = match.slice(1, 4).map(BigInt) as [bigint, bigint, bigint];
  const pre = match[4]?.split('.') ?? [];
  const numbers = [major, minor, patch, ...pre.filter(isNumber).map(BigInt)];
  return numbers.every((number) => number < MAX_NUMBER) ? { core: [major, minor, patch], pre } : undefined;
}

const isNumber = (text: string): boolean => /^[0-9]+$/.test(text);

/** Drops a `v` and leading zeros, and fills in minor and patch where nothing follows the core. */
function normalized(text: string): string {
  const [, ...found] = /^v?([^.]*)(?:\.([^.]*)(?:\.(.*))?)?$/s.exec(text)!;
  const parts = found.filter((part) => part !== undefined);
  if (parts.length < 3 && /[+-]/.test(parts.at(-1)!)) return '';
  const filled = [...parts, '0', '0'].slice(0, 3);
  return filled.map((part) => part.replace(/^0+(?=[0-9])/, '')).join('.');
}

function parse(text: string, normalize = false): Boxed {
  const version = parseVersion(text, normalize);
  if (version === undefined) throw new CelEvaluationError(`${goQuote(text.slice(0, 100))} is not a semantic version`);
  return new CelOpaque(NAME, version);
}

const isSemver = (text: string, normalize = false): boolean => parseVersion(text, normalize) !== undefined;

function compareVersions(a: Version, b: Version): number {
  for (let i = 0; i < 3; i++) if (a.core[i] !== b.core[i]) return a.core[i]! < b.core[i]! ? -1 : 1;
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length) || 0;
  for (let i = 0; i < Math.min(a.pre.length, b.pre.length); i++) {
    const order = compareIdentifiers(a.pre[i]!, b.pre[i]!);
    if (order !== 0) return order;
  }
  return Math.sign(a.pre.length - b.pre.length);
}

/** Numbers before words, numbers by value. */
function compareIdentifiers(a: string, b: string): number {
  if (a === b) return 0;
  const [x, y] = [isNumber(a), isNumber(b)];
  if (x && y) return BigInt(a) < BigInt(b) ? -1 : 1;
  if (x !== y) return x ? -1 : 1;
  return a < b ? -1 : 1;
}

defineEquality(NAME, (a, b) => compareVersions(a as Version, b as Version) === 0);

const order = (a: Boxed, b: Boxed): number => compareVersions(a.value, b.value);
const part = (position: 0 | 1 | 2) => (version: Boxed) => intFromBigInt(version.value.core[position]);

export const SEMVER: readonly Overload[] = [
  overload('semver', `(string): ${NAME}`, parse, TRAVERSE_ONLY),
  overload('semver', `(string, bool): ${NAME}`, parse, TRAVERSE_ONLY),
  overload('isSemver', '(string): bool', isSemver, TRAVERSE_ONLY),
  overload('isSemver', '(string, bool): bool', isSemver, TRAVERSE_ONLY),
  overload('major', `${NAME}.(): int`, part(0), ONE),
  overload('minor', `${NAME}.(): int`, part(1), ONE),
  overload('patch', `${NAME}.(): int`, part(2), ONE),
  overload('isGreaterThan', `${NAME}.(${NAME}): bool`, (a: Boxed, b: Boxed) => order(a, b) > 0, ONE),
  overload('isLessThan', `${NAME}.(${NAME}): bool`, (a: Boxed, b: Boxed) => order(a, b) < 0, ONE),
  overload('compareTo', `${NAME}.(${NAME}): int`, order, ONE),
];
