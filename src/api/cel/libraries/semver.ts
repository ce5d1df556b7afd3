/** Semantic versions (2.0.0), strict unless normalising is asked for. */
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

const PART = '(0|[1-9][0-9]*)';
const IDENT = '[0-9A-Za-z-]+';
const STRICT = new RegExp(
  `^${PART}\\.${PART}\\.${PART}(?:-(${IDENT}(?:\\.${IDENT})*))?(?:\\+(${IDENT}(?:\\.${IDENT})*))?$`,
);

function parseVersion(text: string, normalize: boolean): Version | undefined {
  if (text.length > MAX_TEXT) return undefined;
  const match = STRICT.exec(normalize ? normalized(text) : text);
  if (match === null) return undefined;
  const pre = match[4]?.split('.') ?? [];
  if (pre.some((part) => /^0[0-9]+$/.test(part))) return undefined;
  const core = [BigInt(match[1]!), BigInt(match[2]!), BigInt(match[3]!)] as const;
  return core.some((part) => part >= 1n << 64n) ? undefined : { core, pre };
}

/** Drops a `v`, fills in minor and patch, and drops leading zeros. */
function normalized(text: string): string {
  const bare = text.replace(/^v/, '');
  const end = bare.search(/[-+]/);
  const core = (end === -1 ? bare : bare.slice(0, end)).split('.');
  while (core.length < 3) core.push('0');
  return core.map((part) => part.replace(/^0+(?=[0-9])/, '')).join('.') + (end === -1 ? '' : bare.slice(end));
}

function parse(text: string, normalize = false): Boxed {
  const version = parseVersion(text, normalize);
  if (version === undefined) throw new CelEvaluationError(`Invalid semver ${JSON.stringify(text)}`);
  return new CelOpaque(NAME, version);
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
const isSemver = (text: string, normalize = false): boolean => parseVersion(text, normalize) !== undefined;
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
