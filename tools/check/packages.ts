/**
 * The import check: packages import one another downward only, by name, and of them the modules that their manifest calls public; rooms of a package in
 * their listed order; one controller never another; no circle between files; `node:` modules stay out of what must run in
 * any engine. The order is data: packages.json.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { circles } from './circles.ts';

export interface PackagePlan {
  /** Packages that it may import, each listed before it. */
  readonly dependsOn: readonly string[];
  /** Rooms in the order in which they may import: each only those before it. Any order when not given. */
  readonly rooms?: readonly string[];
  /** A room whose own rooms never import one another; '' for those of the package. */
  readonly isolatedRooms?: string;
}

export interface Plan {
  /** In order: each imports only those before it. */
  readonly packages: Readonly<Record<string, PackagePlan>>;
  /** Those that must run in any JavaScript engine. */
  readonly anyEngine: readonly string[];
  readonly nodeModulesAllowed: readonly string[];
  /** Circles that there still are, each as its files, sorted: the list gets shorter, until it is gone. */
  readonly circles: readonly (readonly string[])[];
}

/** One import of one file; paths are relative to the repository's root. */
export interface Import {
  readonly file: string;
  readonly target: string;
  /** `import type`: erased at run time, so it may cross a room's order, never a package's. */
  readonly typeOnly: boolean;
}

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?[^'"\n;]*?(?:\{[^}]*\}[^'"\n;]*?)?from\s+['"]([^'"]+)['"]|(?:^|\n)\s*import\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g;

/** The imports of a source text; relative targets are resolved against the file. */
export function importsOf(file: string, source: string): Import[] {
  const found: Import[] = [];
  for (const match of source.matchAll(IMPORT)) {
    const target = match[3] ?? match[4] ?? match[5]!;
    found.push({
      file,
      target: target.startsWith('.') ? join(dirname(file), target) : target,
      typeOnly: match[2] !== undefined,
    });
  }
  return found;
}

const isTest = (file: string): boolean => /\.(test|contract|fixture)\.ts$/.test(file);

interface Place {
  readonly name: string;
  readonly rooms: readonly string[];
}

/** The package of a file, and the folders it lies in below `src`. */
function place(file: string): Place | undefined {
  const [packages, name = '', src, ...rest] = file.split('/');
  return packages === 'packages' && src === 'src' ? { name, rooms: rest.slice(0, -1) } : undefined;
}

/** What is wrong with these imports under this plan, one line each; empty when all is well. */
export function importViolations(imports: readonly Import[], plan: Plan): string[] {
  return imports.flatMap((one) => {
    const from = place(one.file);
    if (!from || isTest(one.file)) return [];
    const own = plan.packages[from.name];
    if (!own) return [`${one.file}: package "${from.name}" is not in tools/check/packages.json`];
    const { file, target } = one;
    if (target.startsWith('node:'))
      return plan.anyEngine.includes(from.name) && !plan.nodeModulesAllowed.includes(file)
        ? [`${file}: imports ${target}, but ${from.name} must run in any JavaScript engine`]
        : [];
    const name = /^@coracle\/([^/]+)/.exec(target)?.[1];
    if (name !== undefined) {
      if (name === from.name) return [`${file}: imports its own package by name; name the file`];
      return own.dependsOn.includes(name) ? [] : [`${file}: ${from.name} may not import ${name}`];
    }
    const to = place(target);
    if (!to) return [];
    if (to.name !== from.name) return [`${file}: reaches inside ${to.name} (${target}); import @coracle/${to.name}`];
    return roomViolation(one, { from: from.rooms, to: to.rooms, plan: own });
  });
}

function roomViolation(
  { file, target, typeOnly }: Import,
  { from, to, plan }: { readonly from: Place['rooms']; readonly to: Place['rooms']; readonly plan: PackagePlan },
): string[] {
  const { isolatedRooms, rooms } = plan;
  if (isolatedRooms !== undefined) {
    const [ownRoom, otherRoom] =
      isolatedRooms === ''
        ? [from[0], to[0]]
        : from[0] === isolatedRooms && to[0] === isolatedRooms
          ? [from[1], to[1]]
          : [undefined, undefined];
    if (ownRoom !== undefined && otherRoom !== undefined && ownRoom !== otherRoom)
      return [`${file}: ${ownRoom} imports ${otherRoom}; one controller never imports another`];
  }
  const [ownRoom, otherRoom] = [from[0], to[0]];
  if (!rooms || typeOnly || ownRoom === undefined || otherRoom === undefined || ownRoom === otherRoom) return [];
  const [at, there] = [rooms.indexOf(ownRoom), rooms.indexOf(otherRoom)];
  if (at < 0) return [`${file}: room ${ownRoom} is not in tools/check/packages.json`];
  return there > at ? [`${file}: room ${ownRoom} imports ${otherRoom}, which comes after it (${target})`] : [];
}

/**
 * Modules of other packages that are imported and that their manifest does not name: its member `public` is the list of
 * what a package gives away, and who imports from it names the module, so that a start loads no more than it needs.
 */
export function surfaceViolations(
  imports: readonly Import[],
  surface: (name: string) => ReadonlySet<string>,
): string[] {
  return imports.flatMap(({ file, target }) => {
    const [, name = '', path] = /^@coracle\/([^/]+)(?:\/(.+))?$/.exec(target) ?? [];
    if (isTest(file) || name === '' || path === undefined || path.endsWith('.json')) return [];
    return surface(name).has(path)
      ? []
      : [`${file}: ${path} of ${name} is not public; packages/${name}/package.json names what is`];
  });
}

/** Packages that the plan lets import one that is not before them. */
export function planViolations({ packages }: Pick<Plan, 'packages'>): string[] {
  const names = Object.keys(packages);
  return names.flatMap((name, at) =>
    packages[name]!.dependsOn.filter((other) => !names.slice(0, at).includes(other)).map(
      (other) => `tools/check/packages.json: ${name} may not depend on ${other}, which does not come before it`,
    ),
  );
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  /** Modules that other packages may import, by their paths below `src`. */
  readonly public?: readonly string[];
}

/** Packages that are imported and not named in the manifest of the package, and those named and not imported. */
export function manifestViolations(
  name: string,
  { dependencies = {} }: Manifest,
  imports: readonly Import[],
): string[] {
  const packageOf = (target: string): string => /^(@[^/]+\/[^/]+|[^/]+)/.exec(target)![1]!;
  const used = new Set(
    imports
      .filter(({ file, target }) => !isTest(file) && !/^node:|^packages\/|\.json$/.test(target))
      .map(({ target }) => packageOf(target)),
  );
  const manifest = `packages/${name}/package.json`;
  return [
    ...[...used]
      .filter((one) => !(one in dependencies))
      .map((one) => `${manifest}: does not name ${one}, which it imports`),
    ...Object.keys(dependencies)
      .filter((one) => one.startsWith('@coracle/') && !used.has(one))
      .map((one) => `${manifest}: names ${one}, which it does not import`),
  ];
}

/** Circles of files that the plan does not know, and those it knows that are gone. */
export function circleViolations(imports: readonly Import[], { circles: known }: Pick<Plan, 'circles'>): string[] {
  const text = (circle: readonly string[]): string => [...circle].sort().join(' ');
  const found = circles(imports.filter(({ file, target }) => !isTest(file) && place(target) !== undefined)).map(text);
  const expected = known.map(text);
  return [
    ...found.filter((one) => !expected.includes(one)).map((one) => `files import one another in a circle: ${one}`),
    ...expected
      .filter((one) => !found.includes(one))
      .map((one) => `tools/check/packages.json: this circle is no more, take it out: ${one}`),
  ];
}

/** What only one place may do: a pattern, and the files it is allowed in. */
const MONOPOLIES: readonly { readonly pattern: RegExp; readonly allowed: RegExp; readonly message: string }[] = [
  {
    pattern: /from 'node:child_process'/,
    allowed: /^packages\/runtime\/src\/process\//,
    message: 'only runtime/process starts processes',
  },
  {
    pattern: /\bDate\.now\(|\bperformance\.now\(|\bnew Date\(\)/,
    allowed: /^packages\/runtime\/src\/clock\//,
    message: 'only runtime/clock reads the time; take a Clock',
  },
  {
    pattern: /\bprocess\.(env|argv)\b/,
    allowed: /^packages\/(coracle\/|runtime\/src\/process\/)/,
    message: 'only coracle reads flags and the environment',
  },
];

/** Breaches of those monopolies in one file; comments do not count. */
export function monopolyViolations(file: string, source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
  if (isTest(file)) return [];
  return MONOPOLIES.filter(({ pattern, allowed }) => pattern.test(code) && !allowed.test(file)).map(
    ({ message }) => `${file}: ${message}`,
  );
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;

/** Reads every source file of the packages below `root` and returns the violations. */
export function checkPackages(root: string): string[] {
  const plan = readJson<Plan>(resolve(root, 'tools/check/packages.json'));
  const files = Object.keys(plan.packages).flatMap((name) =>
    readdirSync(resolve(root, 'packages', name, 'src'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(root, join(entry.parentPath, entry.name))),
  );
  const sources = files.map((file) => ({ file, source: readFileSync(resolve(root, file), 'utf8') }));
  const imports = sources.flatMap(({ file, source }) => importsOf(file, source));
  const manifests = new Map(
    Object.keys(plan.packages).map((name) => [
      name,
      readJson<Manifest>(resolve(root, 'packages', name, 'package.json')),
    ]),
  );
  return [
    ...planViolations(plan),
    ...surfaceViolations(
      imports.filter(({ file }) => place(file) !== undefined),
      (name) => new Set(manifests.get(name)?.public),
    ),
    ...importViolations(imports, plan),
    ...circleViolations(imports, plan),
    ...[...manifests].flatMap(([name, manifest]) =>
      manifestViolations(
        name,
        manifest,
        imports.filter(({ file }) => place(file)?.name === name),
      ),
    ),
    ...sources.flatMap(({ file, source }) => monopolyViolations(file, source)),
  ];
}
