package native

type session struct{}

func (session) Insert(models ...any) (int64, error) { return 0, nil }
func (session) Create(model any) session            { return session{} }
func (session) Into(table string) session           { return session{} }

type order struct{ ID int64 }

func models(s session) {
	s.Insert(&order{}, new(order)) // these three are counted
	s.Create([]order{{}})
	s.Into("t_order")
	s.Into("other")
	s.Insert("a string")
}
