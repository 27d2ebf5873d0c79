"""Whether a loop goes anywhere: two consecutive relays compared, and a whole history.

`ask` reads what a relay asks for, `words` knows the few words that matter, in English and Chinese,
`likeness` how much two texts share; `compare` comes to a `verdict` on a pair, `stretches` finds
where a history got stuck.
"""
