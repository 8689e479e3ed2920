import re,subprocess,collections,sys,glob,os
ROOT={'tool','toolset','Tool','ToolContext','ToolError','ToolOutput','Toolset','Run','Policy','connect','schemars','serde','json','Error','parameters'}
M={}
src='crates/toolwright/src/'
for f in ['tool','content','model','run','approval','limits','events','sandbox','testing']:
    t=open(src+f+'.rs').read()
    for m in re.finditer(r'pub use (\w+)::(\{[^}]*\}|\w+)(?: as (\w+))?;',t):
        body=m.group(2).strip('{}')
        for n in re.findall(r'\w+',body):
            M.setdefault(n,'toolwright::%s::%s'%(f,n))
for n in ['nearest','nearest_word','DataError','PathSegment','Misfit','Step','read_data','glob_match','Patterns','JsonShape','canonical_json','panic_of','panic_error','with_idle_listener','CONFIDENTIAL','json_size','empty_parameters','text','time','PLACEHOLDER_LOGIN','PLACEHOLDER_TIME']:
    M.setdefault(n,'toolwright_core::'+n)
for n in ['format_time','parse_time','utc_date','is_secret_name','STATE_VERSION']:
    M.setdefault(n,'toolwright_runtime::'+n)
M['completion']='toolwright::run::completion'
M['Environment']='toolwright::file::Environment'
M['session']='toolwright::file'
M['expr']='toolwright::lang::expr'
M['net']='toolwright_net'
M['testkit']='toolwright::testing'
M['Session']='toolwright::file::Session'
SAME={'lang','data','documents','file','mcp','prompted','sandbox','tools'}
SPECIAL={'sandbox::release_program_pages':'toolwright_sandbox::release_program_pages'}
def target(path):
    p='::'.join(path)
    if p in SPECIAL: return SPECIAL[p]
    h=path[0]
    if h in ROOT: return 'toolwright::'+p
    if h in M: return '::'.join([M[h]]+path[1:])
    if h in SAME: return 'toolwright::'+p
    if h=='*': return 'toolwright::*'
    print('UNKNOWN',p,cur); return 'toolwright::'+p
ws=re.compile(r'\s*')
def parse(s,i,prefix):
    out=[]
    i=ws.match(s,i).end()
    if s[i]=='{':
        i+=1
        while True:
            i=ws.match(s,i).end()
            if s[i]=='}': return out,i+1
            o,i=parse(s,i,prefix); out+=o
            i=ws.match(s,i).end()
            if s[i]==',': i+=1
    if s[i]=='*': return [(prefix+['*'],None)],i+1
    m=re.compile(r'\w+').match(s,i)
    name=m.group(); i=m.end()
    if s.startswith('::',i): return parse(s,i+2,prefix+[name])
    alias=None
    m=re.compile(r'\s+as\s+(\w+)').match(s,i)
    if m: alias=m.group(1); i=m.end()
    return [(prefix+[name],alias)],i
def emit(indent,vis,leaves,width):
    groups=collections.defaultdict(list)
    for path,alias in leaves:
        if path[-1]=='self':
            t=target(path[:-1]); 
            mod,name=t.rsplit('::',1) if '::' in t else (t,'self')
        else:
            t=target(path)
            mod,_,name=t.rpartition('::')
        if mod=='' : mod,name=t,'self'
        groups[mod].append(name+(' as '+alias if alias else ''))
    out=[]
    for mod in sorted(groups):
        names=sorted(set(groups[mod]),key=lambda n:(n!='self',n.split(' ')[0][0].islower(),n) )
        if names==['self']: out.append('%s%suse %s;'%(indent,vis,mod)); continue
        if len(names)==1: out.append('%s%suse %s::%s;'%(indent,vis,mod,names[0])); continue
        one='%s%suse %s::{%s};'%(indent,vis,mod,', '.join(names))
        if len(one)<=width: out.append(one); continue
        lines=['%s%suse %s::{'%(indent,vis,mod)]; cur_=indent+'    '
        for n in names:
            if len(cur_)+len(n)+1>width: lines.append(cur_.rstrip()); cur_=indent+'    '
            cur_+=n+', '
        lines.append(cur_.rstrip()); lines.append(indent+'};')
        out+=lines
    return out
def rewrite(t,doc):
    # t: code text. doc: comment prefix lines present
    def one(m):
        s=m.group('tree')
        leaves,_=parse(s+' ',0,[])
        return '\n'.join(emit(m.group('ind'),m.group('vis') or '',leaves,108 if not doc else 104))
    t=re.sub(r'(?m)^(?P<ind>[ \t]*(?:# )?)(?P<vis>pub(?:\([^)]*\))? )?use (?:::)?toolwright::(?P<tree>[^;]*);',one,t)
    # inline
    lines=t.split('\n'); outl=[]
    inuse=False
    for l in lines:
        if re.match(r'\s*(# )?(pub(\([^)]*\))? )?use ',l): inuse=True
        if not inuse:
            def inl(m):
                h=m.group(1)
                if h in ROOT or h in SAME and m.group(0)+m.group(2)!='x': 
                    full=h+(m.group(2) or '')
                    for k,v in SPECIAL.items():
                        if full==k: return v
                    if h in ROOT or h in SAME: return m.group(0)
                if h in M: return M[h]+(m.group(2) or '')
                return m.group(0)
            l=re.sub(r'(?<![\w:-])toolwright::(\w+)((?:::\w+)*)',inl,l)
        if inuse and l.rstrip().endswith(';'): inuse=False
        outl.append(l)
    return '\n'.join(outl)
def docblocks(text):
    # rewrite runs of doc comment lines
    lines=text.split('\n'); out=[]; i=0
    rx=re.compile(r'^(\s*//[/!])( ?)(.*)$')
    while i<len(lines):
        m=rx.match(lines[i])
        if not m or 'toolwright::' not in '\n'.join(lines[i:i+400]): out.append(lines[i]); i+=1; continue
        j=i; body=[]; pre=m.group(1)
        while j<len(lines):
            mm=rx.match(lines[j])
            if not mm or mm.group(1)!=pre: break
            body.append(mm.group(3)); j+=1
        joined='\n'.join(body)
        new=rewrite(joined,True) if 'toolwright::' in joined else joined
        if new==joined: out+=lines[i:j]
        else: out+=[(pre+' '+b) if b else pre for b in new.split('\n')]
        i=j
    return '\n'.join(out)
files=[f for f in subprocess.run("git ls-files 'crates/toolwright-cli/*.rs' 'crates/toolwright/*.rs' 'examples/*.rs' '*.md'",shell=True,capture_output=True,text=True).stdout.split() if not f.startswith('docs/design')]
files=[f for f in files if f!='crates/toolwright/src/lib.rs']
if len(sys.argv)>1: files=sys.argv[1:]
for cur in files:
    t=open(cur).read()
    if not re.search(r'(?<![\w-])toolwright::',t): continue
    if cur.endswith('.md'): n=rewrite(t,True)
    else:
        n=docblocks(t)
        # code lines only: protect doc lines
        ph=[]
        def hide(m): ph.append(m.group(0)); return '\x00%d\x00'%(len(ph)-1)
        n=re.sub(r'(?m)^\s*//[/!].*$',hide,n)
        n=rewrite(n,False)
        n=re.sub('\x00(\\d+)\x00',lambda m:ph[int(m.group(1))],n)
    if n!=t: open(cur,'w').write(n); print('rewrote',cur)
