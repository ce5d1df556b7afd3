/** What the labels of a namespace ask for, and what a Pod is warned of under it (pod-security-admission/api and policy). */
import { type FieldError, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { BASELINE_CHECKS } from './baseline-checks.ts';
import type { CheckedPod, Violation } from './pod-check.ts';
import { RESTRICTED_CHECKS } from './restricted-checks.ts';

export type Level = 'privileged' | 'baseline' | 'restricted';

/** A level in one version of the standard; `latest` is the newest there is. */
export interface LevelVersion {
  readonly level: Level;
  readonly version: string;
}

export interface Policy {
  readonly enforce: LevelVersion;
  readonly audit: LevelVersion;
  readonly warn: LevelVersion;
  /** Labels that say nothing valid. */
  readonly errors: readonly FieldError[];
}

const PREFIX = 'pod-security.kubernetes.io/';
/** The less strict first. */
const LEVELS: readonly Level[] = ['privileged', 'baseline', 'restricted'];
const VERSION = /^v1\.([0-9]|[1-9][0-9]*)$/;
const OPEN: LevelVersion = { level: 'privileged', version: 'latest' };
const NO_POLICY: Policy = { enforce: OPEN, audit: OPEN, warn: OPEN, errors: [] };

/** Most namespaces have none of the labels: they are distinguished before anything is worked out. */
export function policyOf(labels: Readonly<Record<string, string>> | undefined): Policy {
  if (!labels || !MODES.some(({ level, version }) => level in labels || version in labels)) return NO_POLICY;
  const errors: FieldError[] = [];
  const [enforce = OPEN, audit = OPEN, warn = OPEN] = MODES.map((mode) => levelVersion(labels, mode, errors));
  return { enforce, audit, warn, errors };
}

/** `otherwise` counts when the level is not understood: closed for enforce, open for the others. */
const MODES = [
  { level: `${PREFIX}enforce`, version: `${PREFIX}enforce-version`, otherwise: 'restricted' },
  { level: `${PREFIX}audit`, version: `${PREFIX}audit-version`, otherwise: 'privileged' },
  { level: `${PREFIX}warn`, version: `${PREFIX}warn-version`, otherwise: 'privileged' },
] as const;

function levelVersion(
  labels: Readonly<Record<string, string>>,
  mode: (typeof MODES)[number],
  errors: FieldError[],
): LevelVersion {
  const refuse = (label: string, value: string, detail: string): void => {
    errors.push({ type: 'FieldValueInvalid', field: `metadata.labels[${label}]`, value, detail });
  };
  let level = (labels[mode.level] ?? 'privileged') as Level;
  if (!LEVELS.includes(level)) {
    refuse(mode.level, level, `must be one of ${LEVELS.join(', ')}`);
    level = mode.otherwise;
  }
  let version = labels[mode.version] ?? 'latest';
  if (version !== 'latest' && !VERSION.test(version)) {
    refuse(mode.version, version, 'must be "latest" or "v1.x"');
    version = 'latest';
  }
  return { level, version };
}

/** The labels' errors as one text, as upstream's error lists print. */
export function policyErrorText(errors: readonly FieldError[]): string {
  const texts = errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`);
  return texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]`;
}

/** `restricted:latest` */
export const policyName = ({ level, version }: LevelVersion): string => `${level}:${version}`;

export const isSame = (a: LevelVersion, b: LevelVersion): boolean => a.level === b.level && a.version === b.version;

/** How strict a level is, to be compared. */
export const strictness = (level: Level): number => LEVELS.indexOf(level);

/** Why a Pod does not keep to the level; empty when it does. */
export function violationsOf({ level, version }: LevelVersion, pod: CheckedPod): readonly Violation[] {
  if (level === 'privileged') return [];
  const minor = version === 'latest' ? Number.POSITIVE_INFINITY : Number(VERSION.exec(version)![1]);
  const baseline = BASELINE_CHECKS.filter(
    ({ coveredSince = Number.POSITIVE_INFINITY }) => level === 'baseline' || minor < coveredSince,
  );
  return [...baseline, ...(level === 'restricted' ? RESTRICTED_CHECKS : [])]
    .filter(({ since }) => since <= minor)
    .map((check) =>
      check.run(pod, check.level === 'baseline' && level === 'restricted' ? Math.min(minor, STRICT) : minor),
    )
    .filter((found) => found !== undefined);
}

/** Under the restricted level a user namespace does not open what the baseline level then allows. */
const STRICT = 34;

/** `allowPrivilegeEscalation != false (container "a" must ...), ...` */
export const violationText = (violations: readonly Violation[]): string =>
  violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ');
