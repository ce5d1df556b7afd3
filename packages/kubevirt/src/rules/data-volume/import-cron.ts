/** DataImportCrons as pure functions: names of imports, which of them go, conditions, and what is refused. */
import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { CdiCondition, DataImportCron, DataImportCronStatus, ReadonlyDataVolume } from '../../kinds/kinds.ts';
import { parseCron } from './cron-schedule.ts';

type Spec = DeepReadonly<DataImportCron['spec']>;

const DIGEST_LENGTH = 12;
const KEPT = 3;
const MAX_NAME = 253;

/** Name of the DataVolume of one digest (CDI: the managed DataSource, and the start of the digest). */
export const importName = (dataSource: string, digest: string): string => {
  const suffix = `-${digest.replace(/^sha256:/, '').slice(0, DIGEST_LENGTH)}`;
  return dataSource.slice(0, MAX_NAME - suffix.length) + suffix;
};

/** Imports beyond the newest that are kept; the current one counts as the newest. */
export function outdatedImports<T extends ReadonlyDataVolume>(
  imports: readonly T[],
  { garbageCollect, importsToKeep = KEPT }: Spec,
  current: string,
): readonly T[] {
  if (garbageCollect === 'Never') return [];
  const age = ({ metadata }: T): string => metadata.creationTimestamp ?? '';
  return imports
    .filter(({ metadata }) => metadata.name !== current)
    .sort((a, b) => age(b).localeCompare(age(a)))
    .slice(Math.max(0, importsToKeep - 1));
}

/** Conditions Progressing and UpToDate; unchanged ones keep their times. */
export function importCronConditions(
  { currentImports, conditions = [] }: DeepReadonly<DataImportCronStatus>,
  { isFull, problem, now }: { readonly isFull: boolean; readonly problem: string | undefined; readonly now: number },
): CdiCondition[] {
  const isImporting = !!currentImports?.length && !isFull;
  const upToDate = isFull && problem === undefined;
  const reason = problem !== undefined ? 'PollFailed' : isImporting ? 'ImportProgressing' : 'NoDigest';
  const wanted: CdiCondition[] = [
    isImporting
      ? { type: 'Progressing', status: 'True', reason: 'ImportProgressing', message: 'Import is progressing' }
      : { type: 'Progressing', status: 'False', reason: 'NoImport', message: 'No current import' },
    upToDate
      ? { type: 'UpToDate', status: 'True', reason: 'UpToDate', message: 'Latest import is up to date' }
      : { type: 'UpToDate', status: 'False', reason, message: problem ?? 'The latest image is not imported yet' },
  ];
  return wanted.map((condition) => {
    const known = conditions.find(({ type }) => type === condition.type);
    const isSame = known?.status === condition.status && known.lastTransitionTime !== undefined;
    return { ...condition, lastTransitionTime: isSame ? (known.lastTransitionTime ?? '') : formatTime(now) };
  });
}

/** What is refused beside what is wrong with its DataVolume. */
export function validateImportCron(spec: Spec): (FieldError & { readonly detail: string })[] {
  const invalid = (field: string, detail: string) => ({ type: 'FieldValueInvalid' as const, field, detail });
  const found = [];
  if (spec.schedule !== '' && !parseCron(spec.schedule))
    found.push(
      invalid('spec.schedule', `Illegal cron schedule: "${spec.schedule.slice(0, 100)}" is not five fields of cron`),
    );
  if (!spec.managedDataSource) found.push(invalid('spec.managedDataSource', 'Managed DataSource is missing'));
  if (spec.importsToKeep !== undefined && spec.importsToKeep < 0)
    found.push(invalid('spec.importsToKeep', 'Illegal ImportsToKeep value'));
  if (!['', 'Outdated', 'Never'].includes(spec.garbageCollect ?? ''))
    found.push(invalid('spec.garbageCollect', 'Illegal GarbageCollect value: Outdated or Never'));
  if (!['', 'RetainAll', 'None'].includes(spec.retentionPolicy ?? ''))
    found.push(invalid('spec.retentionPolicy', 'Illegal RetentionPolicy value: RetainAll or None'));
  if (!spec.template.spec.source?.registry)
    found.push(
      invalid('spec.template.spec.source', 'only images of registries are polled here: source.registry is missing'),
    );
  return found;
}
