/** Semantic versions (2.0.0), strict unless normalising is asked for. */
import { goQuote } from '../../meta/go-text.ts';
import { constant, TRAVERSE_ONLY } from '../cost-models.ts';
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

const fail = (message: string): never => {
  throw new CelEvaluationError(message);
};

const NUMBERS = /^[0-9]+$/;
const WORD = /^[0-9A-Za-z-]+$/;
const hasLeadingZero = (text: string): boolean => text.length > 1 && text.startsWith('0');
const MAX_NUMBER = 1n << 64n;

function parseNumber(text: string): bigint {
  const value = BigInt(text);
  return value < MAX_NUMBER ? value : fail(`strconv.ParseUint: parsing ${goQuote(text)}: value out of range`);
}

function corePart(name: 'major' | 'minor' | 'patch', text: string): bigint {
  if (text !== '' && !NUMBERS.test(text)) fail(`Invalid character(s) found in ${name} number ${goQuote(text)}`);
  const Name = `${name[0]!.toUpperCase()}${name.slice(1)}`;
  if (hasLeadingZero(text)) fail(`${Name} number must not contain leading zeroes ${goQuote(text)}`);
  return text === '' ? fail('strconv.ParseUint: parsing "": invalid syntax') : parseNumber(text);
}

/** In the order in which the library of upstream looks at the parts. @throws CelEvaluationError with its words */
function parseVersion(text: string, normalize: boolean): Version {
  if (text.length > MAX_TEXT) fail(`Invalid semver of ${text.length} characters`);
  const whole = normalize ? normalized(text) : text;
  if (whole === '') fail('Version string empty');
  const [major, minor, rest] = splitCore(whole);
  if (minor === undefined || rest === undefined) return fail('No Major.Minor.Patch elements found');
  const high = [corePart('major', major!), corePart('minor', minor)] as const;
  const plus = rest.indexOf('+');
  const build = plus === -1 ? [] : rest.slice(plus + 1).split('.');
  const bare = plus === -1 ? rest : rest.slice(0, plus);
  const dash = bare.indexOf('-');
  const pre = dash === -1 ? [] : bare.slice(dash + 1).split('.');
  const core = [...high, corePart('patch', dash === -1 ? bare : bare.slice(0, dash))] as const;
  for (const part of pre) checkPrerelease(part);
  for (const part of build) {
    if (part === '') fail('Build meta data is empty');
    if (!WORD.test(part)) fail(`Invalid character(s) found in build meta data ${goQuote(part)}`);
  }
  return { core, pre };
}

function checkPrerelease(part: string): void {
  if (part === '') fail('Prerelease is empty');
  if (NUMBERS.test(part)) {
    if (hasLeadingZero(part)) fail(`Numeric PreRelease version must not contain leading zeroes ${goQuote(part)}`);
    parseNumber(part);
  } else if (!WORD.test(part)) {
    fail(`Invalid character(s) found in prerelease ${goQuote(part)}`);
  }
}

/** The third part has all that follows the second dot. */
function splitCore(text: string): string[] {
  const parts = text.split('.');
  return parts.length <= 3 ? parts : [parts[0]!, parts[1]!, parts.slice(2).join('.')];
}

/** Drops a `v` and leading zeros, and fills in minor and patch. */
function normalized(text: string): string {
  const parts = splitCore(text.replace(/^v/, '')).map((part) => {
    if (part.length < 2) return part;
    const bare = part.replace(/^0+/, '');
    return /^[0-9]/.test(bare) ? bare : `0${bare}`;
  });
  if (parts.length < 3 && /[+-]/.test(parts.at(-1)!)) fail('short version cannot contain PreRelease/Build meta data');
  while (parts.length < 3) parts.push('0');
  return parts.join('.');
}

const parse = (text: string, normalize = false): Boxed => new CelOpaque(NAME, parseVersion(text, normalize));

function isSemver(text: string, normalize = false): boolean {
  try {
    parseVersion(text, normalize);
    return true;
  } catch {
    return false;
  }
}

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
  const [x, y] = [/^[0-9]+$/.test(a), /^[0-9]+$/.test(b)];
  if (x && y) return BigInt(a) < BigInt(b) ? -1 : 1;
  if (x !== y) return x ? -1 : 1;
  return a < b ? -1 : 1;
}

defineEquality(NAME, (a, b) => compareVersions(a as Version, b as Version) === 0);

const order = (a: Boxed, b: Boxed): number => compareVersions(a.value, b.value);
const ONE = constant(1);
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
