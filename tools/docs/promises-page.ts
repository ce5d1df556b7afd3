/** docs/promises.md, and what is wrong with the promises in the tests. */
import type { Mark } from './promise-marks.ts';

/** Where a test stands, and what is promised there. The first prefix that fits counts. */
const PACKAGES: readonly (readonly [prefix: string, name: string])[] = [
  ['packages/runtime/', 'runtime: files, processes, HTTP, OCI'],
  ['packages/apimachinery/', 'apimachinery: objects, schemas, patches'],
  ['packages/cel/', 'cel: expressions'],
  ['packages/client/', 'client: informers, queues, commits'],
  ['packages/apiserver/', 'apiserver: the API server'],
  ['packages/cluster-rules/', 'cluster-rules: claims, volumes, placement'],
  ['packages/kube-controllers/', 'kube-controllers'],
  ['packages/kubevirt/', "kubevirt: KubeVirt's kinds, rules and controllers"],
  ['packages/node-agent/', 'node-agent: guests on QEMU'],
  ['packages/gitops/', 'gitops: RootSync and RepoSync'],
  ['packages/coracle/', 'coracle: the program'],
  ['test/features', 'Features, on a running API server'],
  ['test/node', 'Guests, on real QEMU'],
  ['test/gitops', 'Git, with real repositories'],
  ['test/compat', 'Clients: kubectl and libraries'],
  ['test/cel-conformance', 'CEL, by the public conformance data'],
  ['test/cli', 'The program, as users start it'],
  ['test/tour', 'The tour and the demo'],
  ['test/threats', 'Attacks'],
  ['test/faults', 'Faults: kills, full disks, silent nodes'],
  ['test/history', 'Histories'],
  ['test/fuzz', 'Random input'],
  ['', 'The project itself'],
];

const HEAD = `# Promises

Printed from the tests by \`npm run docs\`; change a promise above its test. A promise stands with the test that
has its sentence; the last column links the others that prove it. What users can rely on, in forty lines:
[guarantees](guarantees.md).
`;

/** Proofs of one promise, the one with the sentence first. */
interface Promised {
  readonly id: string;
  readonly text: string;
  readonly file: string;
  readonly others: readonly string[];
}

const numberOf = (id: string): number => Number(id.slice(2));

function promisesOf(marks: readonly Mark[]): Promised[] {
  const byId = Map.groupBy(
    marks.filter(({ key }) => key.startsWith('S-')),
    ({ key }) => key,
  );
  return [...byId].flatMap(([id, all]) => {
    const main = all.find(({ text }) => text !== undefined);
    if (!main?.text) return [];
    const others = [...new Set(all.map(({ file }) => file))].filter((file) => file !== main.file).sort();
    return [{ id, text: main.text, file: main.file, others }];
  });
}

const nameOf = (file: string): string => file.slice(file.lastIndexOf('/') + 1).replace(/(\.test|\.contract)?\.ts$/, '');
const linkTo = (file: string): string => `[${nameOf(file)}](../${file})`;
// A bar would end the cell.
const cell = (text: string): string => text.replaceAll('|', '\\|');

/** The page, by package and test file. Pure. */
export function promisesPage(marks: readonly Mark[]): string {
  const byPackage = Map.groupBy(
    promisesOf(marks),
    ({ file }) => PACKAGES.find(([prefix]) => prefix === '' || file.startsWith(`${prefix}/`))![1],
  );
  const sections = PACKAGES.flatMap(([, name]) => {
    const promises = byPackage.get(name);
    if (!promises) return [];
    const rows = promises
      .toSorted((a, b) => (a.file === b.file ? numberOf(a.id) - numberOf(b.id) : a.file < b.file ? -1 : 1))
      .map(
        ({ id, text, file, others }) =>
          `| ${linkTo(file)} | ${id} | ${cell(text)} | ${others.map(linkTo).join(', ')} |`,
      );
    return [`## ${name}\n\n| feature | number | promise | also |\n|---|---|---|---|\n${rows.join('\n')}\n`];
  });
  return `${HEAD}\n${sections.join('\n')}`;
}

/** What is wrong with the marks of all tests, one line each. `elsewhere` are numbers that pages give. Pure. */
export function promiseFaults(marks: readonly Mark[], elsewhere: ReadonlySet<string>): string[] {
  const wrong: string[] = [];
  const said = new Map<string, Mark>();
  for (const mark of marks) {
    const at = `${mark.file}:${mark.line}`;
    if (mark.title === undefined) wrong.push(`${at}: no test follows ${mark.key}`);
    if (mark.text === undefined || mark.key === 'Compat') continue;
    const other = said.get(mark.key);
    if (other) wrong.push(`${at}: ${mark.key} is said in ${other.file} already`);
    else if (elsewhere.has(mark.key)) wrong.push(`${at}: ${mark.key} is said on a page already`);
    said.set(mark.key, mark);
  }
  for (const { key, file, line } of marks)
    if (key !== 'Compat' && !said.has(key) && !elsewhere.has(key))
      wrong.push(`${file}:${line}: ${key} is said nowhere`);
  return wrong;
}
