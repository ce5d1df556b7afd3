import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createNodeUsage } from './node-usage.ts';

const MIB = 1024 * 1024;

/** An agent that says one thing after the other, the last one for good; undefined = it does not answer. */
function agentOf(answers: readonly (readonly [node: number, guest: number] | undefined)[]) {
  const clock = createFakeClock();
  let asked = 0;
  const usage = createNodeUsage({
    clock,
    log: silentLogger,
    signal: NEVER,
    connect: async () => async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)];
      if (!answer) throw new Error('it is silent');
      const figures = (usageCoreNanoSeconds: number) => ({
        cpu: { usageCoreNanoSeconds },
        memory: { workingSetBytes: MIB },
      });
      const containers = [{ name: 'compute', ...figures(answer[1]) }];
      const body = { node: figures(answer[0]), pods: [{ podRef: { uid: 'u' }, containers }] };
      return { status: 200, headers: {}, body: new TextEncoder().encode(JSON.stringify(body)) };
    },
  });
  return { clock, usage, asked: () => asked };
}

/** What is asked now, once the second that a first answer takes is over. */
async function measured({ clock, usage }: ReturnType<typeof agentOf>) {
  const asking = usage('n');
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  await clock.advance(1000);
  return asking;
}

test('a rate is the difference of two answers, and the next question needs but one more', async () => {
  const agent = agentOf([
    [1e9, 4e9],
    [3e9, 4.5e9],
    [3e9, 5.5e9],
  ]);
  const [first, same] = await Promise.all([measured(agent), agent.usage('n')]);
  assert.equal(first, same, 'one question for both');
  assert.deepEqual([first?.windowMs, first?.node], [1000, { nanoCores: 2e9, memoryBytes: MIB }]);
  assert.deepEqual(first?.pods.get('u')?.get('compute'), { nanoCores: 5e8, memoryBytes: MIB });
  assert.equal(await agent.usage('n'), first, 'it is kept for a second');
  assert.equal(agent.asked(), 2);
  await agent.clock.advance(4000);
  const next = await agent.usage('n');
  assert.deepEqual([next?.windowMs, next?.node?.nanoCores, agent.asked()], [4000, 0, 3]);
  assert.equal(next?.pods.get('u')?.get('compute')?.nanoCores, 25e7);
});

test('what counts anew has no rate, and an agent that is silent no figures', async () => {
  const restarted = await measured(
    agentOf([
      [1e9, 4e9],
      [2e9, 1e9],
    ]),
  );
  assert.deepEqual([restarted?.node?.nanoCores, restarted?.pods.size], [1e9, 0]);
  assert.equal(await measured(agentOf([undefined])), undefined);
});
