import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LAUNCHER_FILE as program } from '../testkit/program.ts';
import { openWorkspace } from './workspace.ts';

// S-203: `systemd` prints a unit whose stop fits its budget.
test('coracle systemd prints a unit whose stop fits its budget', async (t) => {
  const at = openWorkspace(t);
  const up = await at.run(['systemd', '--data-dir', '/srv/100% a', '--budget', '300']);
  assert.equal(up.code, 0, up.stderr);
  assert.match(up.stdout, /^\[Unit\]\n/);
  const lines = up.stdout.split('\n');
  assert.ok(lines.includes(`ExecStart=${program} up --data-dir "/srv/100%% a" --no-merge-kubeconfig`));
  assert.ok(lines.includes(`ExecStop=-${program} down --data-dir "/srv/100%% a" --timeout 300`));
  for (const line of ['TimeoutStopSec=310', 'KillMode=process', 'WantedBy=multi-user.target'])
    assert.ok(lines.includes(line));

  const node = await at.run(['systemd', 'node', '--drain', '--name', 'n1', '--kubeconfig', '/k', '--data-dir', '/d']);
  assert.ok(node.stdout.includes(`ExecStart=${program} node join --data-dir /d --stop-vms\n`));
  assert.ok(node.stdout.includes(`ExecStop=-${program} drain n1 --kubeconfig /k --timeout 120\n`));
  const open = await at.run(['systemd', 'up', '--data-dir', '/d', '--bind-address', '192.0.2.1']);
  assert.ok(open.stdout.includes(' --no-merge-kubeconfig --bind-address 192.0.2.1\n'));
  const reached = await at.run(['systemd', 'node', '--data-dir', '/d', '--address', '192.0.2.1']);
  assert.ok(reached.stdout.includes(' --stop-vms --address 192.0.2.1\n'));
  for (const [argv, message] of [
    [['systemd', 'all'], /up \| node/],
    [['systemd', '--drain'], /--drain is for coracle systemd node/],
    [['systemd', 'node', '--drain'], /--drain needs --kubeconfig/],
    [['systemd', '--address', '192.0.2.1'], /--address is not for coracle systemd up: say --bind-address/],
    [['systemd', 'node', '--address', 'here'], /--address takes an IP address/],
    [['systemd', '--budget', '5'], /--budget takes a whole number from 30/],
  ] as const) {
    const wrong = await at.run(argv);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, message);
  }
});
