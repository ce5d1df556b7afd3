/**
 * Rows of SPECIFICATION.md: promises that have not been moved into their tests yet. `npm run docs -- --move` moves them.
 */

export interface Proof {
  readonly file: string;
  readonly title: string;
}

export interface Row {
  readonly id: string;
  readonly text: string;
  /** No test proves it yet: it stays on the page. */
  readonly isPending: boolean;
  readonly proofs: readonly Proof[];
}

const PROMISE = /^- \*\*(S-\d+)\*\* (.+)$/;
const PROOF = /^ {2}- \[([^\]]+)\]\(([^)]+)\): (`+)(.+)\3$/;

/** The rows of a page, and what cannot be read in it. Pure. */
export function readRows(page: string): { readonly rows: Row[]; readonly wrong: string[] } {
  const rows: (Row & { readonly proofs: Proof[] })[] = [];
  const wrong: string[] = [];
  let isOpen = false;
  for (const line of page.split('\n')) {
    const [, id, text = ''] = PROMISE.exec(line) ?? [];
    if (id) {
      rows.push({ id, text: text.replace(/ `\[pending\]`$/, ''), isPending: text.endsWith('`[pending]`'), proofs: [] });
      isOpen = true;
      continue;
    }
    if (!line.startsWith('  - ')) {
      isOpen = false;
      continue;
    }
    const [, shown, file = '', , title = ''] = PROOF.exec(line) ?? [];
    if (shown === undefined || !isOpen) wrong.push(`not a proof of a promise: ${line}`);
    else if (shown !== file) wrong.push(`${rows.at(-1)!.id}: shows ${shown} and links to ${file}`);
    else rows.at(-1)!.proofs.push({ file, title });
  }
  return { rows, wrong };
}

/** The page without these rows and their proofs, and without headings that nothing is left below. Pure. */
export function withoutRows(page: string, ids: ReadonlySet<string>): string {
  const kept: string[] = [];
  let isDropped = false;
  for (const line of page.split('\n')) {
    const [, id] = PROMISE.exec(line) ?? [];
    if (id) isDropped = ids.has(id);
    else if (!line.startsWith('  - ')) isDropped = false;
    if (!isDropped) kept.push(line);
  }
  return kept.join('\n').replaceAll(/\n{3,}/g, '\n\n');
}
