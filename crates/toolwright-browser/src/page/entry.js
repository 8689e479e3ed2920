// What the debugger calls, in one object of this isolated world.
const commands = {
  walk, commit, locate, hitsFrame, focus, setValue, currentValue, choose, scrollBy, frame, nodeOf, adopt, take,
  hostAt: (at) => walk.hosts?.[at] || null,
};
