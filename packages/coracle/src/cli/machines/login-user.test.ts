import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cloudInitUser, hasLastingRoot } from './login-user.ts';

type Spec = Parameters<typeof cloudInitUser>[0];
const withData = (userData: string): Spec =>
  ({ domain: {}, volumes: [{ name: 'c', cloudInitNoCloud: { userData } }] }) as unknown as Spec;

test('the user is the one that cloud-init makes', () => {
  for (const [data, user] of [
    ['#cloud-config\nuser: debian\n', 'debian'],
    ['#cloud-config\nuser: {name: me}\n', 'me'],
    ['#cloud-config\nusers: [default, {name: ops}]\n', 'ops'],
    ['#cloud-config\nusers: [default]\n', undefined],
    ['#cloud-config\nhostname: x\n', undefined],
    ['#cloud-config\nuser: "-oProxyCommand=x"\n', undefined],
    ['#cloud-config\nuser: "a $(b)"\n', undefined],
    ['#cloud-config\n: [', undefined],
    ['#!/bin/sh\nuser: x\n', undefined],
  ] as const)
    assert.equal(cloudInitUser(withData(data)), user, data);
  const userDataBase64 = btoa('#cloud-config\nuser: far\n');
  assert.equal(
    cloudInitUser({ volumes: [{ name: 'c', cloudInitConfigDrive: { userDataBase64 } }] } as unknown as Spec),
    'far',
  );
  assert.equal(cloudInitUser(undefined), undefined);
});

test('a root disk lasts when it is a claim or a file of the node, and is the one that boots', () => {
  const spec = (first: number) =>
    ({
      domain: {
        devices: {
          disks: [
            { name: 'a', disk: {}, bootOrder: first },
            { name: 'b', disk: {}, bootOrder: 2 },
          ],
        },
      },
      volumes: [
        { name: 'a', containerDisk: { image: 'x' } },
        { name: 'b', persistentVolumeClaim: { claimName: 'c' } },
      ],
    }) as unknown as Spec;
  assert.equal(hasLastingRoot(spec(1)), false);
  assert.equal(hasLastingRoot(spec(3)), true);
  assert.equal(hasLastingRoot({ domain: {} } as unknown as Spec), false);
});
