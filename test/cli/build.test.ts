/** What `npm run build` makes is packed, installed where there is nothing else of ours, and run there. */
import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { bundle } from '../../tools/build/bundle.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { openWorkspace, root, runProgram } from './workspace.ts';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
/** Programs: they run when they are loaded. */
const PROGRAMS = /^(main|large-work-thread|sqlite-worker|filter-process)\.js$/;
/** Characters. */
const TEXT = 200_000;

// S-1002: `npm run build` makes a package without dependencies that npm packs and installs; what is installed serves
//   what an earlier start wrote, finds all of its own parts, and names itself in units of systemd.
test('a build is packed, installed without anything else, serves what it wrote before, and says where it lies', async (t) => {
  const at = openWorkspace(t);
  const built = join(at.dir, 'built');
  await bundle(root, built);
  const prefix = join(at.dir, 'prefix');
  mkdirSync(prefix);
  const environment = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    HOME: at.home,
    npm_config_cache: join(at.dir, 'npm'),
    npm_config_update_notifier: 'false',
  };
  const run = (file: string, ...argv: string[]) => runProgram(file, argv, environment);
  const packed = await run('npm', 'pack', built, '--pack-destination', at.dir, '--json');
  assert.equal(packed.code, 0, packed.stderr);
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  const installed = await run('npm', 'install', '--global', '--offline', '--prefix', prefix, join(at.dir, filename));
  assert.equal(installed.code, 0, installed.stderr);
  const home = join(prefix, 'lib/node_modules/coracle');
  assert.deepEqual(readdirSync(dirname(home)), ['coracle'], 'it depends on no other package');
  assert.match(
    readFileSync(join(home, 'THIRD-PARTY-LICENSES'), 'utf8'),
    /^ws \d.*\(MIT\)\n\n.*Permission is hereby granted/ms,
  );

  const coracle = join(prefix, 'bin/coracle');
  assert.ok(lstatSync(coracle).isSymbolicLink());
  assert.deepEqual(await run(coracle, 'version'), { code: 0, stdout: `coracle ${version}\n`, stderr: '' });

  // S-1002
  await t.test('each part of it can be loaded, and the programs that it starts by name are there', async () => {
    const lib = join(home, 'lib');
    const parts = readdirSync(lib).filter((name) => !PROGRAMS.test(name));
    assert.equal(readdirSync(lib).length - parts.length, 4);
    const urls = parts.map((name) => pathToFileURL(join(lib, name)).href);
    const load = `for (const url of ${JSON.stringify(urls)}) await import(url); process.exit()`;
    const loaded = await run(process.execPath, '--input-type=module', '--eval', load);
    assert.deepEqual(loaded, { code: 0, stdout: '', stderr: '' });
    const vm = join(at.dir, 'vm');
    mkdirSync(vm);
    writeFileSync(join(vm, 'net-filter.json'), '{"version":1,"cards":[]}');
    const filter = `process.chdir(${JSON.stringify(vm)}); await import(${JSON.stringify(pathToFileURL(join(lib, 'filter-process.js')).href)})`;
    assert.equal((await run(process.execPath, '--input-type=module', '--eval', filter)).stderr, '');
  });

  // S-1002
  await t.test('it serves a second time what was written the first time, as YAML too', async () => {
    const up = ['up', '--data-dir', at.data, '--port', '0', '--nodes', '0', '--detach', '--no-merge-kubeconfig'];
    for (const isFirst of [true, false]) {
      const started = await run(coracle, ...up);
      assert.equal(started.code, 0, started.stderr);
      const admin = adminOf(at.data);
      try {
        const path = '/api/v1/namespaces/default/configmaps';
        if (isFirst) {
          const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {text: ${'y'.repeat(TEXT)}}\n`;
          const { status } = await admin.handler({
            method: 'POST',
            path,
            query: '',
            headers: { 'content-type': 'application/yaml' },
            body: new TextEncoder().encode(yaml),
            peer: { address: '' },
            signal: NEVER,
          });
          assert.equal(status, 201);
        }
        const kept = (await admin.client.raw('GET', `${path}/kept`)) as { data: { text: string } };
        assert.equal(kept.data.text.length, TEXT);
        const { gitVersion } = (await admin.client.raw('GET', '/version')) as { gitVersion: string };
        assert.match(gitVersion, /^v1\./);
      } finally {
        await admin.close();
      }
      assert.equal((await run(coracle, 'down', '--data-dir', at.data)).code, 0);
    }
  });

  // S-1002
  await t.test('a unit of systemd names the launcher that was installed', async () => {
    const unit = await run(coracle, 'systemd', '--data-dir', at.data);
    assert.match(unit.stdout, new RegExp(`^ExecStart=${join(home, 'coracle')} up `, 'm'));
  });
});
