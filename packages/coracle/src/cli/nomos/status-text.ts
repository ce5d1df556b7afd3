/** `nomos status` in upstream's layout. */
import type { Attempt } from '@coracle/gitops/status/sync-history';
import type { ClusterState } from './cluster-state.ts';
import type { ContextAnswer } from './contexts.ts';
import type { ResourceState, SyncState } from './sync-state.ts';

const LINE = '--------------------';
const INDENT = '  ';
const GAP = '    ';

/** One block for each context, with a blank line between them. */
export const statusText = (
  answers: readonly ContextAnswer<ClusterState>[],
  { history }: { readonly history: boolean },
): string => answers.map((answer) => clusterText(answer, history)).join('\n\n');

function clusterText({ name, isCurrent, answer }: ContextAnswer<ClusterState>, history: boolean): string {
  const head = `${isCurrent ? '*' : ''}${name}`;
  const nothing = (word: string, error: string): string =>
    [head, `${INDENT}${LINE}`, `${INDENT}${word}`, `${INDENT}Error:${GAP}${error}`].join('\n');
  if ('error' in answer) return nothing('N/A', answer.error);
  const state = answer.value;
  if (state.type === 'nothing') return nothing(state.word, state.error);
  const lines = state.syncs.flatMap((sync) => [
    LINE,
    ...syncLines(sync),
    ...(history ? attemptLines(sync.attempts) : []),
  ]);
  return [head, ...lines.map((line) => `${INDENT}${line}`)].join('\n');
}

function syncLines(sync: SyncState): string[] {
  const at = sync.syncedAt === undefined ? '' : ` @ ${goTime(sync.syncedAt)}`;
  const shown = sync.errors.length;
  const cut = shown < sync.totalErrorCount ? `, ErrorTruncated: true, ErrorCountAfterTruncation: ${shown}` : '';
  return [
    `${sync.scope}:${sync.name}${GAP}${sync.source}`,
    `${sync.status}${at}${GAP}${sync.commit}`,
    ...(sync.totalErrorCount > 0 ? [`TotalErrorCount: ${sync.totalErrorCount}${cut}`] : []),
    ...sync.errors.map((error) => `Error:${GAP}${error}`),
    ...resourceLines(sync.resources ?? []),
  ];
}

function resourceLines(resources: readonly ResourceState[]): string[] {
  if (resources.length === 0) return [];
  const rows = resources.map(({ namespace, name, status, sourceHash }) => [namespace, name, status, sourceHash]);
  return ['Managed resources:', ...columns([['NAMESPACE', 'NAME', 'STATUS', 'SOURCEHASH'], ...rows])];
}

/** Ours: upstream has no history. */
function attemptLines(attempts: readonly Attempt[]): string[] {
  if (attempts.length === 0) return [];
  const rows = attempts.map(({ at, commit, result, errors, codes }) => [
    goTime(at),
    commit === '' ? 'N/A' : commit,
    result,
    errors === 0 ? '' : `${errors} (${codes.map((code) => `KNV${code}`).join(', ')})`,
  ]);
  return ['Last attempts:', ...columns([['TIME', 'COMMIT', 'RESULT', 'ERRORS'], ...rows])];
}

/** As wide as the widest cell, three blanks apart, further in than the lines around them. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map((row) => `      ${row.map((cell, at) => cell.padEnd(widths[at]!)).join('   ')}`.trimEnd());
}

/** As Go writes a time: `2025-03-04 10:11:12 +0000 UTC`. */
const goTime = (text: string): string => {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : `${at.toISOString().slice(0, 19).replace('T', ' ')} +0000 UTC`;
};
