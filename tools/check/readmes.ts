/**
 * The README check: a newcomer reads a README in two minutes and finds what it names. Lines are of at most 100 columns,
 * files and exported names in backticks are in the tree, and every folder of a package has a README or is named in one
 * above it.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const MAX_COLUMNS = 100;
/** What stands in backticks and is no name of ours: templates, paths of the user's machine, names of other projects. */
const FILE_NAME = /^[\w@./-]+\.(?:ts|json|sh|md|awk|yaml|mjs)$/;
const FOLDER_NAME = /^[\w@.-]+(?:\/[\w@.-]+)*\/?$/;
/** Files that programs write, and those of other projects. */
const ELSEWHERE = ['pool.json', 'swagger.json'];
const EXPORTED_NAME = /^[a-z]+(?:[A-Z][a-z0-9]+)+$/;

/** The lines of a README that are too long, as `line: columns`. Tables, code and lines with a link may be longer. Pure. */
export function longLines(text: string): string[] {
  let isCode = false;
  return text.split('\n').flatMap((line, index) => {
    if (line.startsWith('```')) isCode = !isCode;
    const isFree = isCode || line.startsWith('|') || line.startsWith('    ') || line.includes('](');
    return isFree || line.length <= MAX_COLUMNS ? [] : [`${index + 1}: ${line.length} columns`];
  });
}

/** What a README names in backticks, without arguments and symbols behind a file. Pure. */
export const namesIn = (text: string): string[] =>
  [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, name]) =>
    name!.replace(/\(.*$/, '').replace(/:[A-Za-z]+$/, ''),
  );

/** Where a README of `folder` may mean a path to be: beside it, in its package, in another package, in the repository. */
function isInTree(root: string, folder: string, path: string): boolean {
  const [name = '', ...rest] = path.split('/');
  const [, ownPackage = ''] = folder.split('/');
  return [
    join(folder, path),
    join(dirname(folder), path),
    join(folder, 'src', path),
    join('packages', ownPackage, 'src', path),
    join('packages', name, 'src', ...rest),
    join('packages', name, 'package.json'),
    path,
  ].some((place) => existsSync(join(root, place)));
}

/** What is wrong with the READMEs of the tree at `root`, as `file: what`. */
export function checkReadmes(root: string): string[] {
  const files = globSync(['packages/**/README.md', 'test/**/README.md', 'tools/**/README.md', 'bench/README.md'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  }).sort();
  const sources = globSync(['packages/*/src/**/*.ts', 'tools/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'], { cwd: root });
  const words = new Set(sources.flatMap((file) => readFileSync(join(root, file), 'utf8').match(/\b[a-z]\w+\b/g) ?? []));
  const others = globSync(['packages/*/src/**/*.json', 'tools/**/*.{json,sh,awk}'], { cwd: root });
  const fileNames = new Set([...sources, ...others, ...ELSEWHERE].map((file) => basename(file)));
  const texts = new Map(files.map((file) => [dirname(file), readFileSync(join(root, file), 'utf8')]));
  const wrong = [...texts].flatMap(([folder, text]) => {
    const missing = [...new Set(namesIn(text))].filter((name) => {
      if (FILE_NAME.test(name)) return !isInTree(root, folder, name) && !fileNames.has(basename(name));
      if (EXPORTED_NAME.test(name)) return !words.has(name);
      return name.includes('/') && FOLDER_NAME.test(name) && isPackagePath(root, name) && !isInTree(root, folder, name);
    });
    return [...longLines(text), ...missing.map((name) => `\`${name}\` is not in the tree`)].map(
      (what) => `${folder}/README.md: ${what}`,
    );
  });
  const folders = new Set(sources.filter((file) => file.startsWith('packages/')).map((file) => dirname(file)));
  const undescribed = [...folders].filter((folder) => !texts.has(folder) && !isNamedAbove(texts, folder));
  return [...wrong, ...undescribed.map((folder) => `${folder}: no README, and none above names it`)];
}

/** `apiserver/registry`: a path that begins with one of our packages. */
const isPackagePath = (root: string, path: string): boolean => existsSync(join(root, 'packages', path.split('/')[0]!));

function isNamedAbove(texts: ReadonlyMap<string, string>, folder: string): boolean {
  if (basename(folder) === 'src') return texts.has(dirname(folder));
  for (let above = dirname(folder); above.includes('/'); above = dirname(above)) {
    const text = texts.get(above);
    if (text !== undefined) return namesIn(text).some((name) => name.replace(/\/$/, '').endsWith(basename(folder)));
  }
  return false;
}
