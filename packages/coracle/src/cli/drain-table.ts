/** How a drain is shown: a table that is drawn again on a terminal, lines of what changed elsewhere. */
import type { DrainRow } from '@coracle/kubevirt/rules/drain/drain-plan';
import { textTable } from './text-table.ts';

export interface ShownRow {
  readonly row: DrainRow;
  /** How far it is; '' in a rehearsal. */
  readonly state: string;
}

const HEADS = ['MACHINE', 'STRATEGY', 'VERDICT', 'BUDGET', 'TARGET', 'EXPECTED', 'STATE', 'HELD BY'];

/** A row as clients read it: its outcome is under the key `verdict`. */
export const rowJson = ({ outcome: verdict, ...row }: DrainRow): object => ({ ...row, verdict });

/** Columns as wide as what is in them; those that nobody fills are left out. */
export function drainTable(rows: readonly ShownRow[]): string {
  const cells = rows.map(({ row, state }) => [
    `${row.namespace}/${row.instance ?? row.pod}`,
    row.strategy ?? '-',
    row.outcome,
    row.budgets.join(', ') || '-',
    row.target ?? '-',
    expected(row),
    state,
    row.blocker ?? '',
  ]);
  const used = HEADS.map((_, at) => at === 0 || cells.some((line) => line[at] !== ''));
  const shown = (line: readonly string[]): string[] => line.filter((_, at) => used[at]);
  return textTable(shown(HEADS), cells.map(shown));
}

function expected({ outcome, seconds }: DrainRow): string {
  if (seconds === undefined) return '-';
  return outcome === 'migrates' ? `about ${seconds}s` : `up to ${seconds}s`;
}

/** Shows a drain as it goes on. */
export function createDrainDisplay(options: {
  readonly print: (text: string) => void;
  readonly asJson: boolean;
  readonly isTerminal: boolean;
}) {
  const { print, asJson, isTerminal } = options;
  /** Machine -> what was said of it last. */
  const said = new Map<string, string>();
  let drawn = 0;
  let last = '';
  return {
    show(rows: readonly ShownRow[]): void {
      if (!asJson && isTerminal) {
        const table = drainTable(rows);
        if (table === last) return;
        last = table;
        // Up over the table before, and clear to the end of the screen.
        print(`${drawn > 0 ? `\x1b[${drawn}A\x1b[J` : ''}${table}`);
        drawn = table.split('\n').length;
        return;
      }
      for (const { row, state } of rows) {
        const key = `${row.namespace}/${row.pod}`;
        const text = asJson
          ? JSON.stringify({ ...rowJson(row), state })
          : `${row.namespace}/${row.instance ?? row.pod}: ${state}${row.blocker ? ` (${row.blocker})` : ''}`;
        if (said.get(key) === text) continue;
        said.set(key, text);
        print(text);
      }
    },
    /** The last line: text for people, or the summary as JSON. */
    end(text: string | undefined, summary: object): void {
      if (asJson) print(JSON.stringify(summary));
      else if (text !== undefined) print(text);
    },
  };
}
