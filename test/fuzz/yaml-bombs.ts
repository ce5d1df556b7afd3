/** YAML that is bad for whoever reads it. */
import { type Body, json, repeated } from './body.ts';

/** Every anchor holds the one before it many times. */
export const aliases = (levels: number, width: number): string =>
  Array.from(
    { length: levels },
    (_, at) =>
      `a${at}: &a${at} [${Array(width)
        .fill(at === 0 ? 'x' : `*a${at - 1}`)
        .join(',')}]`,
  ).join('\n');

export function yamlBombs(): Body[] {
  const yaml = (name: string, text: string): Body => json(name, text, 'application/yaml');
  const lines = (count: number, line: (at: number) => string): string =>
    Array.from({ length: count }, (_, i) => line(i)).join('\n');
  const head = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n';
  return [
    json('YAML aliases', aliases(40, 10), 'application/yaml'),
    json('YAML wide aliases', aliases(6, 60), 'application/yaml'),
    json(
      'YAML with its own tags',
      'a: !!js/function "x"\nb: !!binary xxx\nc: !!set {a}\nd: !<tag:x> 1\n',
      'application/yaml',
    ),
    json(
      'YAML merge of a prototype',
      'x: &x {__proto__: {polluted: 1}}\n<<: *x\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n',
      'application/yaml',
    ),
    json('YAML deep flow', `a: ${'['.repeat(2_000_000)}`, 'application/yaml'),
    json('YAML deep on one line', '- '.repeat(1_000_000), 'application/yaml'),
    json(
      'YAML deep block',
      Array.from({ length: 1200 }, (_, at) => `${' '.repeat(at)}a:`).join('\n'),
      'application/yaml',
    ),
    json('YAML many keys', Array.from({ length: 60_000 }, (_, at) => `k${at}: v`).join('\n'), 'application/yaml'),
    json('YAML one long line', `a: "${'\\x41'.repeat(500_000)}"`, 'application/yaml'),
    yaml('YAML one key again and again', `${head}data:\n${lines(60_000, () => '  k: v')}`),
    yaml('YAML long list', `${head}data:\n${lines(150_000, () => '- a')}`),
    yaml('YAML flow of many keys', `${head}data: {${repeated(60_000, (i) => `k${i}: v`)}}`),
    yaml('YAML of 200 kB', `${head}data:\n${lines(18_000, (i) => `  k${i}: v`)}`),
    yaml('YAML comments', `${head}${lines(100_000, () => '# comment')}`),
    yaml('YAML block text', `${head}data:\n  a: |\n${lines(150_000, () => '    line of text')}`),
    yaml('YAML empty lines', `${head}${'\n'.repeat(800_000)}`),
    yaml('YAML many anchors', `${head}data:\n${lines(40_000, (i) => `  k${i}: &a${i} v`)}`),
    yaml(
      'YAML many documents',
      lines(100_000, () => '---\na: 1'),
    ),
  ];
}
