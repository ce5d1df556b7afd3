/** The product as an npm package without dependencies: programs and all they import in a few files, by esbuild. */
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { buildFacts } from '../../packages/coracle/src/config/build-facts.ts';

/** What is started by its name: the command line, its worker threads, a guest's packet filter, a node's switch and the timer
 * of its frozen guests. */
const PROGRAMS = {
  main: 'packages/coracle/src/main.ts',
  'large-work-thread': 'packages/coracle/src/compose/large-work-thread.ts',
  'sqlite-worker': 'packages/apiserver/src/storage/sqlite-worker.ts',
  'filter-process': 'packages/node-agent/src/network/filter-process.ts',
  'switch-process': 'packages/node-agent/src/network/switch/switch-process.ts',
  'thaw-process': 'packages/node-agent/src/agent/guest/thaw-process.ts',
};
/** As they are: the launcher, and what it and users read. */
const COPIED = [
  'coracle',
  'tools/setup/find-node.sh',
  'tools/setup/private-cache.sh',
  'LICENSE',
  'README.md',
  'SECURITY.md',
];
const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.|-|$)/i;

/** CommonJS packages ask for Node's own modules; under this name nothing of theirs is hidden. */
const REQUIRE =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

/** Two files load `yaml` when they need it, by a way that only Node understands. */
const lateYaml: Plugin = {
  name: 'late yaml',
  setup({ onLoad }) {
    onLoad({ filter: /\/coracle\/src\/config\/kubeconfig(-access)?\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      const contents = source.replaceAll("createRequire(import.meta.url)('yaml')", "require('yaml')");
      if (contents === source) throw new Error(`${path} loads yaml in another way than is known here`);
      return { contents, loader: 'ts' };
    });
  },
};

/** What a build is made of and where it goes, with `more` programs; `target` is emptied. Rejects with what esbuild says. */
export async function bundle(
  root: string,
  target: string,
  more: Readonly<Record<string, string>> = {},
): Promise<{ readonly files: number; readonly bytes: number }> {
  rmSync(target, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { ...PROGRAMS, ...more },
    outdir: join(target, 'lib'),
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    minifySyntax: true,
    // The engine keeps the text of what it loads. Names stay, and lines are short enough to find a place of a stack in.
    minifyWhitespace: true,
    lineLimit: 120,
    // A character beyond Latin would double what a file takes in memory.
    charset: 'ascii',
    legalComments: 'none',
    banner: { js: REQUIRE },
    define: { CORACLE_BUILT_COMMIT: JSON.stringify(buildFacts(root).commit ?? '') },
    plugins: [lateYaml],
    metafile: true,
    logLevel: 'warning',
  });
  for (const name of COPIED) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    copyFileSync(join(root, name), join(target, name));
  }
  chmodSync(join(target, 'coracle'), 0o755);
  writeFileSync(join(target, 'THIRD-PARTY-LICENSES'), licences(root, Object.keys(metafile.inputs)));
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(packageOf(root), null, 2)}\n`);
  const outputs = Object.values(metafile.outputs);
  return { files: outputs.length, bytes: outputs.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** The package that is installed: this one without what only a checkout needs. All it imports is in it. */
function packageOf(root: string): Readonly<Record<string, unknown>> {
  const { name, version, description, license, type, engines } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Record<string, unknown>;
  return { name, version, description, license, type, engines, bin: { coracle: 'coracle' } };
}

/** The terms of every package of which something is in the build. */
function licences(root: string, inputs: readonly string[]): string {
  const packages = new Set(
    inputs.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []).sort(),
  );
  return [...packages]
    .map((directory) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, directory, 'package.json'), 'utf8'));
      const texts = readdirSync(join(root, directory))
        .filter((file) => LICENCE_FILE.test(file))
        .map((file) => readFileSync(join(root, directory, file), 'utf8').trim());
      return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}
