import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { alreadyExists } from '../../../apimachinery/src/meta/status.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import { holdCommits, openStore, PREFIX, put, settle, thing } from './store.fixture.ts';

const key = (name: string) => ({ prefix: PREFIX, namespace: 'ns', name });

async function held() {
  const backend = holdCommits(createMemoryBackend());
  return { backend, store: await openStore(backend, createFakeClock()) };
}
type Store = Awaited<ReturnType<typeof held>>['store'];
const together = (store: Store, first: string, ...others: string[]) =>
  store.writeTogether({ key: key(first), decide: () => ({ type: 'put', object: thing(first, '1') }) }, () =>
    others.map((name) => ({
      key: key(name),
      decide: (current) => (current ? { type: 'keep' } : { type: 'put', object: thing(name, '1') }),
    })),
  );

describe('writeTogether()', () => {
  // S-173: A group of writes is one commit, however many wait before it; when it fails, all of it fails.
  it('puts all into one commit, however many writes wait before it', async () => {
    // 16 waiting writes are worth a commit of their own: the group must not be torn there.
    for (let before = 0; before <= 20; before++) {
      const { backend, store } = await held();
      const blocker = put(store, 'blocker', 'x');
      await settle();
      const waiting = Array.from({ length: before }, (_, i) => put(store, `w${i}`, 'x'));
      const written = together(store, 'vm', 'copy-1', 'copy-2');
      await settle();
      while (backend.held.length > 0) {
        const names = backend.held[0]!.map(({ key: row }) => String(row));
        const mine = names.filter((name) => /vm|copy-/.test(name));
        assert.ok(mine.length === 0 || mine.length === 3, `${before}: ${mine.join()}`);
        await backend.release();
      }
      await Promise.all([blocker, written, ...waiting]);
      assert.ok(store.get(key('vm')) && store.get(key('copy-1')) && store.get(key('copy-2')));
    }
  });

  it('writes none when the first is refused', async () => {
    const { backend, store } = await held();
    await backend.letThrough();
    const refused = store.writeTogether(
      {
        key: key('vm'),
        decide: () => {
          throw alreadyExists({ group: 'g', resource: 'things' }, 'vm');
        },
      },
      () => assert.fail('the others are not asked for'),
    );
    await assert.rejects(refused, { code: 409 });
    assert.equal((await put(store, 'later', 'x'))!.revision, 1);
  });

  it('leaves an object alone whose name is taken', async () => {
    const { backend, store } = await held();
    await backend.letThrough();
    const before = await put(store, 'copy', 'theirs');
    await together(store, 'vm', 'copy');
    assert.equal(store.get(key('copy')), before);
  });

  // S-173
  it('fails as a whole', async () => {
    const { backend, store } = await held();
    const written = together(store, 'vm', 'copy');
    written.catch(() => {});
    await backend.fail('io');
    await assert.rejects(written);
    assert.equal(store.get(key('vm')), undefined);
    assert.equal(store.get(key('copy')), undefined);
  });

  // S-278
  it('fails with the write that one of its parts was decided on', async () => {
    const { backend, store } = await held();
    const address = put(store, 'address', 'theirs');
    address.catch(() => {});
    await settle();
    const written = store.writeTogether(
      { key: key('service'), decide: () => ({ type: 'put', object: thing('service', '1') }) },
      () => [{ key: key('address'), decide: () => ({ type: 'put', object: thing('address', 'mine') }) }],
    );
    written.catch(() => {});
    const unrelated = put(store, 'unrelated', 'x');
    await backend.fail('no-space');
    await assert.rejects(written);
    await backend.letThrough();
    await unrelated;
    assert.equal(store.peek(key('service')), undefined);
    assert.equal(store.peek(key('address')), undefined);
  });

  // S-278
  it('is let in or sent away as a whole', async () => {
    const { backend, store } = await held();
    await backend.letThrough();
    await put(store, 'vm', 'old');
    backend.disk = 'refuse-creates';
    await together(store, 'vm', 'copy');
    assert.ok(store.get(key('copy')), 'what comes with an update that is allowed');
    await assert.rejects(together(store, 'new', 'copy-2'));
    assert.equal(store.get(key('copy-2')), undefined);
  });
});
